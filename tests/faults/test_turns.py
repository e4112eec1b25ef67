"""The fault table through the real client: at the first request of a turn, and after a tool.

Each test says what the person is told, what is stored, and how often tools ran; `server` checks
every request by the strictest reading of its protocol.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.events import (
    Notice,
    ReplyDiscarded,
    ReplyFinished,
    RetryScheduled,
    ToolFinished,
    TurnFinished,
)
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.wires.parts import GO_ON
from tests.faults.cases import (
    Phase,
    at_each_phase,
    in_each_protocol,
    meet,
    roles_before,
    runs_before,
)
from tests.faults.conversation import (
    FINE,
    Conversation,
    failed,
    model_at,
    shown_text,
    succeeded,
)
from tests.faults.table import (
    BEFORE_BREAK,
    BREAKS,
    BREAKS_WITHOUT_TEXT,
    BROKEN_CALLS,
    NOTE,
    ODDITIES,
    PASSING,
    REFUSALS,
    WIRES,
    Row,
    Wire,
)
from tests.support.openai_server import Call, NoHeaders, OpenAiServer, Reply, rate_limited
from tests.support.provider_process import IMPATIENCE_S
from tests.support.runtime import Stage, collect, of_kind, only, roles

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOREIGN_WORDS = ("litellm", "aiohttp", "httpx", "Exception", "Error:", "Errno", "ssl", "b'", "<")
"""What no person should have to read."""


def assert_plain(text: str, talk: Conversation) -> None:
    """That a text is one line which names the model and has no library's words in it."""
    assert talk.model.name in text
    assert "\n" not in text
    assert [word for word in FOREIGN_WORDS if word in text] == []


# Refused


@pytest.mark.parametrize(("row", "wire", "phase"), at_each_phase(REFUSALS))
async def test_a_refusal_is_said_with_what_to_do_and_not_repeated(
    talk: Conversation, row: Row, wire: Wire, phase: Phase
) -> None:
    events = await meet(talk, phase, talk.of(row))
    error = failed(events)
    assert_plain(error, talk)
    assert [word for word in row.words if word not in error] == []
    assert len(of_kind(events, ReplyDiscarded)) == 1
    assert talk.waits.delays_s == []
    assert len(talk.server.chats) == 1 + runs_before(phase)
    assert roles(talk.runtime) == roles_before(phase)
    assert succeeded(await talk.go_on(FINE))
    assert talk.replies[-1].text == "Fine."
    assert talk.times_run == runs_before(phase)


# Waited out


@pytest.mark.parametrize(("row", "wire", "phase"), at_each_phase(PASSING))
async def test_a_fault_that_passes_is_waited_out_in_sight_of_the_person(
    talk: Conversation, row: Row, wire: Wire, phase: Phase
) -> None:
    events = await meet(talk, phase, talk.of(row), FINE)
    assert succeeded(events)
    retry = only(events, RetryScheduled)
    assert (retry.attempt, retry.max_attempts) == (1, 9)
    assert_plain(retry.reason, talk)
    assert [word for word in row.words if word not in retry.reason] == []
    assert talk.waits.delays_s == [retry.delay_s]
    assert retry.delay_s == row.delay_s if row.delay_s else 2 <= retry.delay_s <= 2.5
    assert roles(talk.runtime) == [*roles_before(phase), "assistant"]
    assert talk.times_run == runs_before(phase)
    asked, again = talk.server.chats[-2:]
    assert asked.body == again.body
    assert len(talk.server.chats) == 2 + runs_before(phase)  # no retry behind our back


@pytest.mark.parametrize("name", ["529", "reset before the first token"])
@pytest.mark.parametrize("wire", WIRES)
async def test_after_nine_retries_it_is_said_and_can_be_continued(
    talk: Conversation, wire: Wire, name: str
) -> None:
    row = PASSING[name]
    events = await talk.say("hello", *[talk.of(row)] * 10)
    error = failed(events)
    assert_plain(error, talk)
    assert [word for word in row.words if word not in error] == []
    least = (2, 4, 8, 16, 32, 60, 60, 60, 60)
    waits = zip(talk.waits.delays_s, least, strict=True)
    assert all(least_s <= delay_s <= least_s * 1.25 for delay_s, least_s in waits)
    assert len(talk.server.chats) == 10
    assert roles(talk.runtime) == ["user"]
    assert succeeded(await talk.go_on(FINE))


async def test_stopping_while_it_waits_sends_nothing_more(
    tmp_path: Path, server: OpenAiServer, host: ProviderHost
) -> None:
    is_waiting = asyncio.Event()

    async def sleep(delay_s: float) -> None:
        is_waiting.set()
        await asyncio.Event().wait()

    runtime = Stage(tmp_path).runtime(host, model=model_at(server, "openai"), sleep=sleep)
    server.play(rate_limited("30"), FINE)
    watching = asyncio.create_task(collect(runtime.submit("hello")))
    await is_waiting.wait()
    runtime.abort()
    assert only(await watching, TurnFinished).outcome == "aborted"
    assert len(server.chats) == 1
    assert succeeded(await collect(runtime.continue_turn()))
    await runtime.aclose()


@pytest.mark.thorough
async def test_no_headers_at_all_is_waited_for_as_long_as_the_settings_say(
    impatient_talk: Conversation,
) -> None:
    events = await impatient_talk.say("hello", NoHeaders(), FINE)
    assert succeeded(events)
    assert f"{IMPATIENCE_S:g} s" in only(events, RetryScheduled).reason
    assert await asyncio.to_thread(impatient_talk.server.wait_for_disconnects)
    assert roles(impatient_talk.runtime) == ["user", "assistant"]


# Broken off


async def check_partial_reply(talk: Conversation, row: Row, phase: Phase) -> None:
    """What came is kept and marked; it is sent again with a word after it, which is said."""
    events = await meet(talk, phase, talk.of(row), Reply(text="blue."))
    assert succeeded(events)
    retry = only(events, RetryScheduled)
    assert_plain(retry.reason, talk)
    assert [word for word in row.words if word not in retry.reason] == []
    assert "asked to continue" in retry.reason
    assert shown_text(events) == f"{BEFORE_BREAK}blue."
    kept = of_kind(events, ReplyFinished)[-2].message
    assert (kept.text, kept.stop_reason) == (BEFORE_BREAK, "error")
    assert kept.error_message
    assert len(talk.server.chats) == 2 + runs_before(phase)
    partial, last = talk.server.chats[-1].body["messages"][-2:]
    assert BEFORE_BREAK.strip() in json.dumps(partial)
    assert GO_ON in json.dumps(last)
    assert [reply.text for reply in talk.replies[-2:]] == [BEFORE_BREAK, "blue."]
    assert talk.times_run == runs_before(phase)


@pytest.mark.parametrize(("row", "wire", "phase"), at_each_phase(BREAKS))
async def test_a_reply_that_breaks_off_is_kept_and_can_be_continued(
    talk: Conversation, row: Row, wire: Wire, phase: Phase
) -> None:
    await check_partial_reply(talk, row, phase)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ["a broken chunk", "no finish reason"])
async def test_a_reply_that_breaks_twice_in_the_same_way_is_not_asked_for_again(
    talk: Conversation, wire: Wire, name: str
) -> None:
    error = failed(await talk.say("hello", *[talk.of(BREAKS[name])] * 2))
    assert_plain(error, talk)
    what_broke = {"a broken chunk": "not valid JSON", "no finish reason": "finish reason"}
    assert what_broke[name] in error
    assert "twice in a row" in error
    assert "/model" in error
    assert len(talk.server.chats) == 2
    assert succeeded(await talk.go_on(FINE))


@pytest.mark.parametrize("names", [("a broken chunk", "no finish reason"), ("reset", "reset")])
@pytest.mark.parametrize("wire", WIRES)
async def test_another_break_and_a_lost_connection_are_retried(
    talk: Conversation, wire: Wire, names: tuple[str, str]
) -> None:
    answers = [talk.of(BREAKS[name]) for name in names]
    assert succeeded(await talk.say("hello", *answers, FINE))
    assert len(talk.server.chats) == 3


@pytest.mark.thorough
async def test_a_reply_that_falls_silent_is_kept_and_its_connection_closed(
    impatient_talk: Conversation,
) -> None:
    silent = Row({"openai": Reply(text=BEFORE_BREAK, ending="hang")}, ("stopped responding",))
    await check_partial_reply(impatient_talk, silent, "first request")
    assert impatient_talk.server.disconnects == 1


@pytest.mark.parametrize(("row", "wire", "phase"), at_each_phase(BREAKS_WITHOUT_TEXT))
async def test_what_breaks_off_before_any_text_is_asked_for_again_and_run_once(
    talk: Conversation, row: Row, wire: Wire, phase: Phase
) -> None:
    events = await meet(talk, phase, talk.of(row), Reply(tool_calls=(NOTE,)), FINE)
    assert succeeded(events)
    retry = only(events, RetryScheduled)
    assert_plain(retry.reason, talk)
    assert [word for word in row.words if word not in retry.reason] == []
    assert len(of_kind(events, ReplyDiscarded)) == 1
    assert talk.times_run == runs_before(phase) + 1
    assert roles(talk.runtime) == [
        *roles_before(phase),
        "assistant",
        "toolResult",
        "assistant",
    ]


# Replies that are no use


@pytest.mark.parametrize("wire", WIRES)
async def test_an_empty_reply_is_asked_for_once_more_and_then_said(
    talk: Conversation, wire: Wire
) -> None:
    events = await talk.say("hello", Reply(), Reply())
    assert "empty reply twice" in failed(events)
    assert "asking again" in only(events, Notice).text
    assert len(talk.server.chats) == 2
    assert succeeded(await talk.go_on(FINE))
    assert await talk.is_usable()


async def test_an_empty_reply_after_a_tool_runs_it_no_second_time(talk: Conversation) -> None:
    events = await meet(talk, "after a tool", Reply(), FINE)
    assert succeeded(events)
    assert talk.times_run == 1
    assert await talk.is_usable()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_content_filter_is_said_and_not_asked_again(talk: Conversation, wire: Wire) -> None:
    events = await talk.say("hello", Reply(text="I will", finish="content_filter"))
    end = only(events, TurnFinished)
    assert (end.outcome, len(talk.server.chats)) == ("error", 1)
    assert "content filter" in end.error
    assert await talk.is_usable()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_reply_cut_by_its_length_is_gone_on_from_three_times(
    talk: Conversation, wire: Wire
) -> None:
    events = await talk.say("hello", *[Reply(text="one two", finish="length")] * 4)
    end = only(events, TurnFinished)
    assert (end.outcome, end.can_continue) == ("length", True)
    assert [reply.stop_reason for reply in talk.replies] == ["length"] * 4
    assert [notice.text[-6:-1] for notice in of_kind(events, Notice)] == ["(1/3)", "(2/3)", "(3/3)"]
    assert succeeded(await talk.go_on(FINE))
    assert len(talk.server.chats) == 5
    for chat in talk.server.chats[1:]:
        assert GO_ON in json.dumps(chat.body["messages"][-1])


# Calls that cannot be run


@pytest.mark.parametrize(("row", "wire", "phase"), at_each_phase(BROKEN_CALLS))
async def test_the_calls_beside_a_broken_one_run_and_the_model_can_mend_it(
    talk: Conversation, row: Row, wire: Wire, phase: Phase
) -> None:
    events = await meet(talk, phase, talk.of(row), Reply(tool_calls=(NOTE,)), FINE)
    assert succeeded(events)
    before = runs_before(phase)
    first, broken = (e.message for e in of_kind(events, ToolFinished)[before : before + 2])
    assert [word for word in row.words if word not in broken.text] == []
    assert talk.times_run == before + 2
    assert [result.is_error for result in talk.results[before:]] == [False, True, False]
    assert not first.is_error
    assert all(isinstance(c.arguments, dict) for reply in talk.replies for c in reply.tool_calls)


@pytest.mark.parametrize("wire", WIRES)
async def test_the_same_id_twice_becomes_two(talk: Conversation, wire: Wire) -> None:
    twice = (Call("bash", NOTE.arguments, id="x"), Call("bash", NOTE.arguments, id="x"))
    again = (Call("bash", NOTE.arguments, id="x"),)
    events = await talk.say("hello", Reply(tool_calls=twice), Reply(tool_calls=again), FINE)
    assert succeeded(events)
    assert talk.times_run == 3
    assert len({result.tool_call_id for result in talk.results}) == 3


async def test_two_calls_under_one_index_are_told_apart(talk: Conversation) -> None:
    merged = (
        Call("bash", NOTE.arguments, id="a", index=0),
        Call("bash", NOTE.arguments, id="b", index=0),
    )
    assert succeeded(await talk.say("hello", Reply(tool_calls=merged), FINE))
    assert [call.id for call in talk.replies[0].tool_calls] == ["a", "b"]
    assert [result.is_error for result in talk.results] == [False, False]
    assert talk.times_run == 2


# What is not in the protocol and comes all the same


@pytest.mark.parametrize(("row", "wire"), in_each_protocol(ODDITIES))
async def test_what_is_not_by_the_book_makes_no_difference(
    talk: Conversation, row: Row, wire: Wire
) -> None:
    events = await talk.say("hello", talk.of(row))
    assert succeeded(events)
    assert shown_text(events).startswith("Fine")
    assert await talk.is_usable()


@pytest.mark.parametrize("wire", WIRES)
async def test_without_usage_the_numbers_are_marked_as_an_estimate(
    talk: Conversation, wire: Wire
) -> None:
    await talk.say("hello", Reply(text="Fine.", usage=None))
    assert talk.replies[0].usage.is_estimate
    assert talk.runtime.conversation.usage.is_estimate
    await talk.say("and now?", Reply(text="Fine.", usage=(500, 7)))
    assert not talk.replies[1].usage.is_estimate
    assert not talk.runtime.conversation.usage.is_estimate


@pytest.mark.parametrize("count", [float("nan"), float("inf"), -5, 1e300, 10**30])
@pytest.mark.parametrize("wire", WIRES)
async def test_an_impossible_count_of_tokens_leaves_reply_and_context_as_they_are(
    talk: Conversation, wire: Wire, count: Any
) -> None:
    assert succeeded(await talk.say("hello", Reply(text="Fine.", usage=(count, count))))
    assert talk.replies[0].text == "Fine."
    usage = talk.runtime.conversation.usage
    assert usage.is_estimate
    assert 100 < usage.used < 10_000
    assert talk.runtime.conversation.totals.input_tokens == 0


@pytest.mark.parametrize("wire", WIRES)
async def test_lone_surrogates_are_mended_before_they_are_shown_stored_or_sent(
    talk: Conversation, wire: Wire
) -> None:
    call = Call("bash", {"command": "echo '\ud800' >> ran.txt"})
    text = ("smile \ud83d", "\ude00 and \udc00", " alone")
    events = await talk.say("hello", Reply(text=text, thinking="\ud800"), Reply(text="x"))
    assert shown_text(events) == "smile 😀 and \ufffd alone"
    assert talk.replies[0].text == "smile 😀 and \ufffd alone"
    assert succeeded(await talk.say("\ud800 from the person", Reply(tool_calls=(call,)), FINE))
    assert "\\ud800" not in json.dumps(talk.server.chats[-1].body)
    assert await talk.is_usable()
