"""A compression agent that does not do its work: nothing comes of it, and one line says why."""

import asyncio

import pytest

from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.features.strategies.agent.strategy import MOST_ROUNDS
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import AssistantMessage, ToolCall
from agent_tui.providers.base import (
    Chunk,
    FaultKind,
    FinishChunk,
    ModelRef,
    ProviderError,
    ToolCallChunk,
)
from agent_tui.sessions.entries import MessageEntry
from agent_tui.tokens import TokenCounter
from tests.compaction.writer import Models, Writer
from tests.features.strategies.agent.scene import (
    RESULTS_ALONE,
    Scene,
    account,
    good_run,
    long_session,
    metadata,
    segment,
    shorten,
    verify,
)
from tests.support.context_checks import context_bytes
from tests.support.rows import each_row
from tests.support.talk import Talk


def raw_call(name: str, arguments: str) -> tuple[Chunk, ...]:
    """A call as a server sends it, whatever its arguments are."""
    return (ToolCallChunk(0, "c1", name, arguments), FinishChunk("toolUse"))


async def failure_of(scene: Scene, provider: Writer | None = None) -> str:
    """What the person is told; the conversation is as it was."""
    before = context_bytes(scene.path)
    with pytest.raises(CompactionError) as caught:
        await scene.plan(provider)
    assert not isinstance(caught.value, NothingToCompactError)
    told = str(caught.value)
    assert told.startswith("The compression agent did not reach the target: ")
    assert told.endswith(".")
    assert ".." not in told
    assert "\n" not in told
    assert context_bytes(scene.path) == before
    return told


MISBEHAVIOURS: dict[str, tuple[Reply, str]] = {
    "text instead of tool calls": (
        Reply(text="I shall compress it now."),
        "it answered with text instead of tool calls",
    ),
    "a refusal": (
        Reply(text="I'm sorry, but I can't help with that."),
        "it answered with text instead of tool calls",
    ),
    "nothing": (Reply(), "it answered with text instead of tool calls"),
    "an unknown tool": (
        Reply(tool_calls=(call("c", "rm", path="/"),)),
        "There is no tool 'rm'",
    ),
    "unknown ids": (
        Reply(tool_calls=(shorten("100-120"),)),
        "ids names no messages; ids are 1 to 48",
    ),
    "an unknown segment": (
        Reply(tool_calls=(segment(40, 90),)),
        "There are no messages 40-90; ids are 1 to 48",
    ),
    "a segment backwards": (
        Reply(tool_calls=(segment(9, 4),)),
        "There are no messages 9-4; ids are 1 to 48",
    ),
    "junk ids": (
        Reply(tool_calls=(shorten("the old ones"),)),
        "ids names no messages; ids are 1 to 48",
    ),
    "no arguments": (
        Reply(tool_calls=(call("c", "compress_tool_result"),)),
        "ids names no messages; ids are 1 to 48",
    ),
    "protected results": (
        Reply(tool_calls=(shorten("47"),)),
        "Nothing changed: these messages are protected, already short, or not results",
    ),
    "a protected segment": (
        Reply(tool_calls=(segment(43, 48),)),
        "Messages 43-48 cannot be replaced: 43 is protected or was replaced already",
    ),
    "a filtered reply": (
        Reply(text="No.", finish="contentFilter"),
        "the provider's content filter stopped it",
    ),
}


@each_row("name", MISBEHAVIOURS)
async def test_an_agent_that_misbehaves_is_given_up(name: str, counter: TokenCounter) -> None:
    reply, reason = MISBEHAVIOURS[name]
    scene = Scene(counter, lambda _: reply)
    assert reason in await failure_of(scene)
    assert len(scene.provider.requests) <= 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"ids": ["1-4', "its arguments are not valid JSON"),
        ("[1, 2]", "its arguments are not a JSON object"),
        ("[" * 100_000, "its arguments are not valid JSON"),
    ],
)
async def test_arguments_that_are_no_object_are_told_and_given_up(
    arguments: str, reason: str, counter: TokenCounter
) -> None:
    scene = Scene(counter, [])
    writer = Writer([raw_call("compress_tool_result", arguments)])
    assert reason in await failure_of(scene, writer)
    assert len(writer.requests) == 2


async def test_a_mistake_beside_work_is_answered_and_forgiven(counter: TokenCounter) -> None:
    mistakes = (call("c", "rm"), shorten("400"), metadata(skip="many"))
    replies = [Reply(tool_calls=(*mistakes, shorten(f"{n}-{n + 3}"))) for n in (1, 7, 13)]
    replies.append(Reply(tool_calls=(shorten("1-40"), verify())))
    scene = Scene(counter, replies, target_tokens=RESULTS_ALONE)
    plan = await scene.plan()
    assert plan.statistics["rounds"] == 4
    assert scene.answers(1)[0].startswith("There is no tool 'rm'. Available: get_compression_meta")
    assert scene.answers(1)[2] == "skip must be one number."


@pytest.mark.parametrize("last", [Reply(text="Done."), Reply(tool_calls=(shorten("1-40"),))])
async def test_a_plan_that_meets_the_target_is_kept_though_nobody_verified_it(
    counter: TokenCounter, last: Reply
) -> None:
    replies = [Reply(tool_calls=(shorten("1-40"),)), last, last]
    scene = Scene(counter, replies, target_tokens=RESULTS_ALONE)
    plan = await scene.plan()
    assert plan.tokens_after <= RESULTS_ALONE
    assert len(scene.provider.requests) == 3
    assert "It is met: call verify_compression_target." in scene.shown[1]


async def test_an_agent_that_does_not_come_down_is_given_up_after_its_rounds(
    counter: TokenCounter,
) -> None:
    scene = Scene(counter, lambda _: Reply(tool_calls=(metadata(), verify())))
    assert f"the target was not met in {MOST_ROUNDS} rounds" in await failure_of(scene)
    assert len(scene.provider.requests) == MOST_ROUNDS
    assert scene.phases[-1].startswith(f"compression agent {MOST_ROUNDS}/{MOST_ROUNDS}, 0 mess")


async def test_more_calls_than_allowed_in_a_reply_are_not_carried_out(
    counter: TokenCounter,
) -> None:
    calls = tuple(shorten(str(n), call_id=f"c{n}") for n in range(1, 48))
    scene = Scene(counter, lambda _: Reply(tool_calls=(*calls, verify())))
    await failure_of(scene)
    assert "Not done: a reply may have at most 32 calls." in scene.answers(1)[32]


async def test_segments_there_is_no_room_for_are_not_shown(counter: TokenCounter) -> None:
    calls = tuple(segment(6 * n + 1, 6 * n + 6, call_id=f"s{n}") for n in range(7))
    scene = Scene(counter, lambda _: Reply(tool_calls=calls), models=Models(window=4_096))
    assert "Not shown: read fewer segments at once." in await failure_of(scene)


BAD_TEXTS = {
    "empty": ("...", "it says nothing"),
    "a refusal": ("I'm sorry, I can't help with that.", "it is a refusal"),
    "a loop": ("The file was read again. " * 20, "it repeats itself"),
    "too short": ("It was done.", "it is too short for"),
    "an invented file": (
        account(0) + " See src/evil.py.",
        "it names src/evil.py, which does not occur there",
    ),
    "an invented folder": (account(0) + " See /etc/passwd/x.", "it names /etc/passwd/x, which"),
    "a file of elsewhere": (account(5), "it names src/part5.py, which"),
    "too long": ("word " * 3_000, "repeats itself"),
    "longer": (" ".join(f"parser{n}" for n in range(2_000)), "it saves nothing"),
}


@each_row("name", BAD_TEXTS)
async def test_a_text_that_cannot_stand_for_a_segment_is_not_taken(
    name: str, counter: TokenCounter
) -> None:
    text, reason = BAD_TEXTS[name]
    replies = [
        Reply(tool_calls=(segment(1, 6),)),
        Reply(tool_calls=(segment(1, 6, text),)),
        Reply(tool_calls=(segment(1, 6, text),)),
    ]
    told = await failure_of(Scene(counter, replies))
    assert told.startswith("The compression agent did not reach the target: The text for messages")
    assert reason in told


async def test_a_text_that_gains_nothing_beside_the_rules_is_not_taken(
    counter: TokenCounter,
) -> None:
    talk = Talk(prefix="f")
    talk.user("\n".join(f"Never touch the file number {n} there." for n in range(30)))
    talk.reply("I shall not touch any of the files that you named.")
    text = "The person named the files that are not to be touched, by number, and nothing else."
    replies = [Reply(tool_calls=(segment(1, 2),)), *[Reply(tool_calls=(segment(1, 2, text),))] * 2]
    scene = Scene(counter, replies, (*talk.path, *long_session()))
    assert "messages 1-2 was not accepted: it saves nothing" in await failure_of(scene)


async def test_a_segment_is_replaced_only_once(counter: TokenCounter) -> None:
    replies = [*good_run(), *[Reply(tool_calls=(segment(4, 8),))] * 2]
    scene = Scene(counter, replies, target_tokens=3_000)
    assert "Messages 4-8 cannot be replaced" in await failure_of(scene)


PROVIDER_FAULTS: tuple[FaultKind, ...] = (
    "auth",
    "quota",
    "timeout",
    "context_overflow",
    "bad_request",
    "crashed",
    "overloaded",
    "interrupted",
)


@each_row("kind", PROVIDER_FAULTS)
async def test_a_fault_of_every_model_is_told(kind: FaultKind, counter: TokenCounter) -> None:
    fault = ProviderError(kind, f"It failed: {kind}.")
    models = Models(cheap=ModelRef("scripted/cheap"))
    scene = Scene(counter, lambda _: Reply(error=fault), models=models)
    told = await failure_of(scene)
    assert f"scripted/cheap: It failed: {kind}; scripted/one: It failed: {kind}." in told


async def test_a_fault_in_the_last_round_is_no_new_round_for_the_next_model(
    counter: TokenCounter,
) -> None:
    replies = [Reply(tool_calls=(verify(),))] * (MOST_ROUNDS - 1)
    replies.append(Reply(error=ProviderError("auth", "Refused.")))
    scene = Scene(counter, replies, models=Models(cheap=ModelRef("scripted/cheap")))
    assert "not met in 8 rounds" in await failure_of(scene)
    assert len(scene.provider.requests) == MOST_ROUNDS


async def test_a_setting_that_names_no_model_is_told_with_the_rest(counter: TokenCounter) -> None:
    scene = Scene(counter, lambda _: Reply(error=ProviderError("auth", "Refused.")))
    scene.settings = scene.settings.model_copy(update={"model": "unknown"})
    told = await failure_of(scene)
    assert "compression agent did not reach the target: compaction.model = 'unknown': there" in told
    assert told.endswith("scripted/one: Refused.")


async def test_a_model_with_a_tiny_window_is_not_asked(counter: TokenCounter) -> None:
    scene = Scene(counter, [], models=Models(window=1_500))
    assert "scripted/one: its window is too small for the work" in await failure_of(scene)
    assert scene.provider.requests == []


async def test_where_protected_messages_are_too_large_no_model_is_asked(
    counter: TokenCounter,
) -> None:
    scene = Scene(counter, [], target_tokens=1_000)
    assert "the protected messages alone exceed the target" in await failure_of(scene)
    assert scene.provider.requests == []


async def test_without_a_provider_nothing_is_done(counter: TokenCounter) -> None:
    scene = Scene(counter, [])
    scene.has_provider = False
    assert "no model is available" in await failure_of(scene)


async def test_a_reply_that_does_not_come_is_given_up_at_the_time_limit(
    counter: TokenCounter,
) -> None:
    scene = Scene(counter, lambda _: Reply(text="Well", gate=asyncio.Event()), limit_s=0.2)
    assert "it did not finish within 0 s" in await failure_of(scene)
    assert scene.provider.closed_streams == len(scene.provider.requests)


async def test_cancelling_stops_the_request_and_nothing_comes_of_it(counter: TokenCounter) -> None:
    gate = asyncio.Event()
    replies = [Reply(tool_calls=(shorten("1-40"),)), Reply(text="Well", gate=gate)]
    scene = Scene(counter, replies, target_tokens=RESULTS_ALONE)
    before = context_bytes(scene.path)
    work = asyncio.create_task(scene.plan())
    while len(scene.provider.requests) < 2:
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert scene.provider.closed_streams == 1
    assert context_bytes(scene.path) == before


async def test_work_that_does_not_pass_the_check_is_not_taken_over(counter: TokenCounter) -> None:
    """Without the segment its result would answer an earlier call of the same id, now lost."""
    path = long_session()
    reused = next(
        call.id
        for entry in path[6:]
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
        for call in entry.message.tool_calls
    )
    lost = AssistantMessage(content=(ToolCall(id=reused, name="read"),), timestamp=1)
    replies = [
        Reply(tool_calls=(shorten("1-40"), segment(8, 13))),
        Reply(tool_calls=(segment(8, 13, account(1)), verify())),
    ]
    scene = Scene(
        counter,
        replies,
        (path[0], MessageEntry(id="lost", message=lost), *path[1:]),
        target_tokens=RESULTS_ALONE,
    )
    with pytest.raises(CompactionError, match="failed the check: messages that had to stay"):
        await scene.plan()
