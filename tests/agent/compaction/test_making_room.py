"""Automatic compaction, the `compact` and `recall` tools, undo, and summaries made ahead."""

import asyncio
from collections.abc import Callable

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.config import Settings
from agent_tui.errors import CompactionError
from agent_tui.events import (
    AgentEvent,
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    CompactionStarted,
    ContextChanged,
    Notice,
    SessionChanged,
    TurnFinished,
)
from agent_tui.features.context.undo import undo_compaction
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import ToolResultMessage, Usage
from agent_tui.providers.base import ModelRequest
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry, ContextEditEntry, MessageEntry
from agent_tui.sessions.replay.changes import report_of
from tests.support.patience import PATIENCE_S
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, lines_of, of_kind, only

WINDOW, AHEAD_WINDOW = 20_000, 38_200


def reading(rounds: int, *last: Reply) -> Callable[[ModelRequest], Reply]:
    """A model that reads one large file after the other and then says `last`."""
    state = {"reads": 0}
    closing = iter((*last, *[Reply(text="All read.")] * 5))

    def answer(request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=GOOD_SUMMARY)
        state["reads"] += 1
        number = state["reads"]
        if number > rounds:
            return next(closing)
        return Reply(tool_calls=(call(f"c{number}", "read", path=f"file{number}.txt"),))

    return answer


def write_files(stage: Stage, count: int, lines: int = 250) -> None:
    """Files of about 2,500 tokens each."""
    for number in range(1, count + 1):
        text = "".join(
            f"file {number} line {line} tells of value {line * number}\n" for line in range(lines)
        )
        (stage.workspace / f"file{number}.txt").write_text(text)


def context_bytes(runtime: AgentRuntime) -> str:
    """What the model sees, whole."""
    context = build_context(
        runtime.conversation.log.path_entries(),
        carryover=runtime.conversation.log.header.compaction,
    )
    return "\n".join(item.message.model_dump_json() for item in context.messages)


async def read_all(
    stage: Stage, rounds: int = 9, *last: Reply, target: float = 0
) -> tuple[AgentRuntime, ScriptedProvider, list[AgentEvent]]:
    write_files(stage, rounds)
    provider = ScriptedProvider(reading(rounds, *last))
    runtime = stage.runtime(provider, window=WINDOW)
    if target:
        wanted = runtime.conversation.settings.model_copy(update={"target": target})
        runtime.use_settings(Settings(compaction=wanted))
    events = await collect(runtime.submit("Read all files."))
    return runtime, provider, events


NEAR = 0.76
"""A target so near to the trigger that shortening alone is enough."""


async def test_to_free_much_the_sections_are_written_at_once(stage: Stage):
    _, _, events = await read_all(stage)
    assert all(event.summary for event in of_kind(events, CompactionFinished))


async def test_old_outputs_are_shortened_before_any_summary_is_asked_for(stage: Stage):
    runtime, provider, events = await read_all(stage, target=NEAR)
    finished = of_kind(events, CompactionFinished)
    assert finished
    assert {request.purpose for request in provider.requests} == {"turn"}
    assert not of_kind(events, CompactionStarted)
    for event in finished:
        assert event.summary == ""
        assert event.tokens_after <= runtime.conversation.limits.target
        assert sum(event.freed.values()) > 0
        assert sum(event.messages.values()) > 0
    assert only(events, TurnFinished).outcome == "done"


async def test_the_edits_of_one_compaction_are_one_batch_with_a_report_behind(stage: Stage):
    runtime, _, events = await read_all(stage, target=NEAR)
    first = of_kind(events, CompactionFinished)[0]
    entries = runtime.conversation.log.path_entries()
    at = [entry.id for entry in entries].index(first.entry_id)
    report = report_of(entries[at])
    assert report is not None
    batch = [e for e in entries if isinstance(e, ContextEditEntry) and e.batch == report.batch]
    assert list(entries[at - len(batch) : at]) == batch
    assert sum(report.messages.values()) == len(batch)
    assert (report.tokens_before, report.tokens_after) == (first.tokens_before, first.tokens_after)


async def test_the_bar_drops_at_once_and_shows_an_estimate_until_the_next_reply(stage: Stage):
    _, _, events = await read_all(stage)
    after = events[events.index(of_kind(events, CompactionFinished)[0]) + 1]
    assert isinstance(after, ContextChanged)
    assert after.usage.is_estimate
    assert 0 < after.usage.used < 0.5 * WINDOW


async def test_a_figure_from_before_the_edits_is_not_taken_for_the_present_size(stage: Stage):
    write_files(stage, 9)
    answer = reading(9)

    def counted(request: ModelRequest) -> Reply:
        reply = answer(request)
        sent = sum(len(m.model_dump_json()) for m in request.messages) // 4
        usage = Usage(input=sent + 1_000, output=10, total_tokens=sent + 1_010)
        return Reply(text=reply.text, tool_calls=reply.tool_calls, usage=usage)

    runtime = stage.runtime(ScriptedProvider(counted), window=WINDOW)
    events = await collect(runtime.submit("Read all files."))
    finished = of_kind(events, CompactionFinished)
    assert finished
    for event in finished:
        later = of_kind(events[events.index(event) :], ContextChanged)
        assert later[0].usage.used == event.tokens_after
        assert all(change.usage.used <= 0.8 * WINDOW + 4_000 for change in later)


async def test_an_edited_session_is_resumed_with_the_very_same_context(stage: Stage):
    runtime, _, _ = await read_all(stage)
    seen = context_bytes(runtime)
    await runtime.aclose()
    again = stage.runtime([], window=WINDOW)
    await again.sessions.open(str(runtime.conversation.log.path))
    assert context_bytes(again) == seen


async def test_the_model_may_ask_for_room_and_gets_its_answer_beside_its_call(stage: Stage):
    asks = Reply(tool_calls=(call("k1", "compact", focus="the values"),))
    runtime, provider, events = await read_all(stage, 4, asks)
    finished = of_kind(events, CompactionFinished)[-1]
    assert finished.reason == "tool"
    (answer,) = [
        e.message
        for e in runtime.conversation.log.path_entries()
        if isinstance(e, MessageEntry)
        and isinstance(e.message, ToolResultMessage)
        and e.message.tool_name == "compact"
    ]
    assert not answer.is_error
    assert f"{finished.tokens_before:,}" in answer.text
    results = [m for m in provider.requests[-1].messages if isinstance(m, ToolResultMessage)]
    assert results[-1].tool_call_id == "k1"
    assert only(events, TurnFinished).outcome == "done"


async def test_a_summary_asked_for_by_the_model_keeps_the_call_that_asked(stage: Stage):
    long_talk = "We spoke of many things. " * 60

    def answer(request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=GOOD_SUMMARY)
        if request.messages[-1].role == "toolResult":
            return Reply(text="Now there is room.")
        if "make room" in request.messages[-1].text:
            return Reply(tool_calls=(call("k1", "compact"),))
        return Reply(text=long_talk)

    runtime = stage.runtime(answer, window=26_000)
    for number in range(40):
        if runtime.conversation.usage.used > 12_000:
            break
        await collect(runtime.submit(f"Tell me more, part {number}. " + long_talk))
    events = await collect(runtime.submit("Now make room."))
    assert only(events, CompactionFinished).summary
    assert only(events, TurnFinished).outcome == "done"
    assert of_kind(events, CompactionFailed) == []


async def test_there_is_no_compaction_for_the_model_where_little_is_in_use(stage: Stage):
    runtime = stage.runtime(
        [Reply(tool_calls=(call("k1", "compact"),)), Reply(text="ok")], window=WINDOW
    )
    before = len(runtime.conversation.log.path_entries())
    events = await collect(runtime.submit("Hello."))
    assert not of_kind(events, CompactionFinished)
    assert len(runtime.conversation.log.path_entries()) == before + 4
    assert "No compaction needed" in str(runtime.conversation.log.path_entries()[-2])


async def test_what_was_shortened_can_be_recalled_by_the_id_in_its_place(stage: Stage):
    runtime, provider, _ = await read_all(stage, target=NEAR)
    edit = next(
        e
        for e in runtime.conversation.log.path_entries()
        if isinstance(e, ContextEditEntry) and e.tier >= 1
    )
    assert f"[recall {edit.target_id}]" in str(edit.replacement)
    answers = iter([Reply(tool_calls=(call("r1", "recall", id=edit.target_id),)), Reply(text="ok")])
    provider._answer = lambda _request: next(answers)
    await collect(runtime.submit("What was in it?"))
    result = next(
        e.message
        for e in reversed(runtime.conversation.log.path_entries())
        if isinstance(e, MessageEntry) and isinstance(e.message, ToolResultMessage)
    )
    original = next(e for e in runtime.conversation.log.path_entries() if e.id == edit.target_id)
    assert isinstance(original, MessageEntry)
    assert original.message.text.split("\n")[3] in result.text


async def test_undoing_edits_gives_the_same_bytes_as_before_them(stage: Stage):
    runtime, _, _ = await read_all(stage, target=NEAR)
    edits = [
        entry
        for entry in runtime.conversation.log.path_entries()
        if isinstance(entry, ContextEditEntry)
    ]
    rest = tuple(
        entry
        for entry in runtime.conversation.log.path_entries()
        if not isinstance(entry, ContextEditEntry) or entry.batch != edits[-1].batch
    )
    wanted = "\n".join(item.message.model_dump_json() for item in build_context(rest).messages)
    before = runtime.conversation.usage.used
    await undo_compaction(runtime)
    assert context_bytes(runtime) == wanted
    assert runtime.conversation.usage.used > before


async def test_after_an_undoing_the_context_is_not_compacted_again_at_once(stage: Stage):
    asks = Reply(tool_calls=(call("k1", "compact"),))
    runtime, _, _ = await read_all(stage, 4, asks)
    conversation = runtime.conversation
    early = conversation.settings.model_copy(update={"trigger_at": 0.5})
    runtime.use_settings(Settings(compaction=early))
    await undo_compaction(runtime)
    assert conversation.level == "trigger"
    events = await collect(runtime.submit("Go on."))
    assert not of_kind(events, CompactionFinished)


async def test_undoing_a_compaction_by_hand_leads_back_with_what_was_said_since(stage: Stage):
    provider = ScriptedProvider(reading(3))
    write_files(stage, 3)
    runtime = stage.runtime(provider, window=60_000)
    await collect(runtime.submit("Read all files."))
    whole, parent = context_bytes(runtime), runtime.conversation.log.header.id
    await collect(runtime.compact())
    assert runtime.conversation.log.header.id != parent
    await collect(runtime.submit("And now?"))
    events = await undo_compaction(runtime)
    assert of_kind(list(events), SessionChanged)[0].session_id == parent
    assert runtime.conversation.log.header.id == parent
    now = context_bytes(runtime)
    assert now.startswith(whole)
    assert "And now?" in now[len(whole) :]


async def test_undoing_twice_takes_back_the_compaction_before(stage: Stage):
    runtime, _, _ = await read_all(stage, 14)
    batches = {
        e.batch for e in runtime.conversation.log.path_entries() if isinstance(e, ContextEditEntry)
    }
    assert len(batches) >= 2
    for _ in batches:
        await undo_compaction(runtime)
    plain = tuple(e for e in runtime.conversation.log.path_entries() if isinstance(e, MessageEntry))
    assert context_bytes(runtime) == "\n".join(
        item.message.model_dump_json() for item in build_context(plain).messages
    )


async def test_there_is_nothing_to_undo_in_a_conversation_that_was_not_compacted(stage: Stage):
    runtime = stage.runtime([Reply(text="Hello.")], window=WINDOW)
    await collect(runtime.submit("Hello."))
    before = lines_of(runtime)
    with pytest.raises(CompactionError, match="was not compacted"):
        await undo_compaction(runtime)
    assert lines_of(runtime) == before


SPEECH = "We spoke of this and of that, at length and with care. " * 50


class Speaker:
    """A model that talks at length and summarises when asked, once `gate` is open."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()

    def __call__(self, request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=GOOD_SUMMARY, gate=self.gate)
        return Reply(text=SPEECH)


async def speak_until(runtime: AgentRuntime, is_enough: Callable[[], bool]) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    for number in range(100):
        if is_enough():
            return events
        events += await collect(runtime.submit(f"Part {number}. {SPEECH}"))
    raise AssertionError("the conversation never came so far")


def is_soon_full(runtime: AgentRuntime) -> bool:
    """Whether a tenth of the target is left until the next compaction."""
    limits, used = runtime.conversation.limits, runtime.conversation.usage.used
    return limits.trigger - used <= limits.target // 10


async def until_asked(provider: ScriptedProvider, times: int = 1) -> None:
    """Until a summary was asked for, however long that takes."""
    async with asyncio.timeout(PATIENCE_S):
        while summaries_asked(provider) < times:
            await asyncio.sleep(0.01)


def summaries_asked(provider: ScriptedProvider) -> int:
    return sum(request.purpose == "summary" for request in provider.requests)


async def test_a_summary_is_ready_when_the_context_is_full(stage: Stage):
    provider = ScriptedProvider(Speaker())
    runtime = stage.runtime(provider, window=AHEAD_WINDOW, background=True)
    await speak_until(runtime, lambda: is_soon_full(runtime))
    asked = 2  # a summary is no choice, so it is asked for once more
    await until_asked(provider, asked)
    assert not any(
        isinstance(entry, CompactionEntry) for entry in runtime.conversation.log.path_entries()
    )
    events = await speak_until(
        runtime,
        lambda: any(
            isinstance(e, CompactionEntry) for e in runtime.conversation.log.path_entries()
        ),
    )
    assert summaries_asked(provider) == asked
    finished = only(events, CompactionFinished)
    assert finished.summarised_by == "scripted/test"
    assert not finished.is_fallback
    assert runtime.conversation.totals.input_tokens > 0


async def test_a_summary_in_the_making_is_waited_for_rather_than_made_twice(stage: Stage):
    speaker = Speaker()
    speaker.gate.clear()
    provider = ScriptedProvider(speaker)
    runtime = stage.runtime(provider, window=AHEAD_WINDOW, background=True)
    await speak_until(runtime, lambda: runtime.conversation.level == "trigger")
    turn = asyncio.create_task(collect(runtime.submit("And now?")))
    await until_asked(provider)
    assert summaries_asked(provider) == 1
    assert not turn.done()
    speaker.gate.set()
    events = await turn
    assert only(events, CompactionFinished).summary
    phases = [event.phase for event in of_kind(events, CompactionProgress)]
    assert phases == ["finishing the summary started earlier"]


async def test_no_summary_is_made_ahead_where_shortening_will_do(stage: Stage):
    write_files(stage, 9, lines=500)
    provider = ScriptedProvider(reading(9))
    runtime = stage.runtime(provider, window=AHEAD_WINDOW, background=True)
    near = runtime.conversation.settings.model_copy(update={"target": NEAR})
    runtime.use_settings(Settings(compaction=near))
    await collect(runtime.submit("Read all files."))
    assert summaries_asked(provider) == 0


async def test_a_summary_made_ahead_is_not_used_after_an_undoing(stage: Stage):
    provider = ScriptedProvider(Speaker())
    runtime = stage.runtime(provider, window=AHEAD_WINDOW, background=True)
    await speak_until(
        runtime,
        lambda: any(
            isinstance(e, CompactionEntry) for e in runtime.conversation.log.path_entries()
        ),
    )
    await undo_compaction(runtime)
    asked = summaries_asked(provider)
    await speak_until(runtime, lambda: summaries_asked(provider) > asked)


async def test_leaving_stops_a_summary_in_the_making_and_writes_nothing(stage: Stage):
    speaker = Speaker()
    speaker.gate.clear()
    provider = ScriptedProvider(speaker)
    runtime = stage.runtime(provider, window=AHEAD_WINDOW, background=True)
    await speak_until(runtime, lambda: is_soon_full(runtime))
    await until_asked(provider)
    assert summaries_asked(provider) == 1
    before = lines_of(runtime)
    await runtime.aclose()
    assert provider.closed_streams == 1
    assert lines_of(runtime) == before


async def test_a_context_that_fills_up_at_once_again_and_again_is_named(stage: Stage):
    (stage.workspace / "big.txt").write_text("a line of the big file\n" * 4_000)
    provider = ScriptedProvider(
        lambda request: (
            Reply(text=GOOD_SUMMARY)
            if request.purpose == "summary"
            else Reply(
                tool_calls=tuple(
                    call(f"c{at}-{n}", "read", path="big.txt", offset=1 + 150 * at + n)
                    for at in (len(provider.requests),)
                    for n in range(3)
                ),
                usage=Usage(input=16_000, output=10, total_tokens=16_010),
            )
            if len(provider.requests) < 24
            else Reply(text="done")
        )
    )
    runtime = stage.runtime(provider, window=WINDOW)
    events = await collect(runtime.submit("Read all of it."))
    told = [notice for notice in of_kind(events, Notice) if "filled up again" in notice.text]
    assert told
    assert "big.txt" in told[0].text
