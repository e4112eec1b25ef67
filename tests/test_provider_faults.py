"""Everything a provider can do wrong, through the real client and a whole conversation.

Each test says what the person sees, what is stored, and that the next request is one the
strictest service would take: `server` checks every request at the end of every test.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
import pytest_asyncio

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import (
    AgentEvent,
    CompactionFinished,
    CompactionProgress,
    Notice,
    ReplyDiscarded,
    ReplyFinished,
    RetryScheduled,
    TextDelta,
    ToolFinished,
    TurnFinished,
)
from agent_tui.messages import AssistantMessage, ToolResultMessage
from agent_tui.providers.base import ModelRef
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.wire import GO_ON
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog
from tests.support.openai_server import (
    Answer,
    Call,
    NoHeaders,
    OpenAiServer,
    Reply,
    bad_gateway,
    bad_key,
    context_overflow,
    failure,
    no_such_model,
    out_of_quota,
    overloaded,
    rate_limited,
)
from tests.support.provider_process import IMPATIENCE_S
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only, roles
from tests.support.wire_rules import openai_problems

pytestmark = pytest.mark.asyncio(loop_scope="session")

FINE = Reply(text="Fine.")
NOTE = Call("bash", {"command": "echo ran >> ran.txt"})
"""A call that leaves a line behind each time it runs."""

PASSING_FAULTS = [
    pytest.param(rate_limited("7"), 7.0, id="429 in seconds"),
    pytest.param(rate_limited("86400"), 60.0, id="429 for a day"),
    pytest.param(
        rate_limited(format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)),
        60.0,
        id="429 by date",
    ),
    pytest.param(rate_limited(), None, id="429 without a time"),
    pytest.param(failure(408, "Request timeout."), None, id="408"),
    pytest.param(failure(500, "Internal error."), None, id="500"),
    pytest.param(bad_gateway(), None, id="502 in html"),
    pytest.param(failure(503, "No capacity.", retry_after="5"), 5.0, id="503"),
    pytest.param(failure(504, "Gateway timeout."), None, id="504"),
    pytest.param(overloaded(), None, id="529"),
    pytest.param(NoHeaders(reset=True), None, id="reset before the first token"),
]


class Waits:
    """A sleep that notes what was asked for and is over at once."""

    def __init__(self) -> None:
        self.delays_s: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        self.delays_s.append(delay_s)


class Conversation:
    """A runtime whose model is the server, its turns, and what it left behind."""

    def __init__(self, stage: Stage, server: OpenAiServer, host: ProviderHost) -> None:
        self.waits = Waits()
        self.server = server
        self.runtime: AgentRuntime = stage.runtime(
            host,
            model=ModelRef("some-model", server.base_url, "THE_KEY"),
            sleep=self.waits.sleep,
        )
        self.workspace = stage.workspace

    async def say(self, text: str = "hello", *answers: Answer) -> list[AgentEvent]:
        self.server.play(*answers)
        return await collect(self.runtime.submit(text))

    async def go_on(self, *answers: Answer) -> list[AgentEvent]:
        self.server.play(*answers)
        return await collect(self.runtime.continue_turn())

    async def is_usable(self) -> bool:
        """Whether the conversation goes on as if nothing had happened."""
        events = await self.say("and now?", FINE)
        return only(events, TurnFinished).outcome == "done"

    @property
    def stored(self) -> list[MessageEntry]:
        """The messages in the session file, read anew."""
        path = self.runtime.log.path
        assert path is not None
        with SessionLog.open(path, read_only=True) as log:
            assert log.warnings == ()
            return [entry for entry in log.path_entries() if isinstance(entry, MessageEntry)]

    @property
    def replies(self) -> list[AssistantMessage]:
        return [e.message for e in self.stored if isinstance(e.message, AssistantMessage)]

    @property
    def results(self) -> list[ToolResultMessage]:
        return [e.message for e in self.stored if isinstance(e.message, ToolResultMessage)]

    @property
    def times_run(self) -> int:
        """How often `NOTE` was run."""
        file = self.workspace / "ran.txt"
        return file.read_text().count("ran") if file.exists() else 0


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as running:
        yield running


@pytest.fixture
def server(running_server: OpenAiServer) -> Iterator[OpenAiServer]:
    """The server; at the end no request may have broken the protocol's rules."""
    running_server.reset()
    yield running_server
    for chat in running_server.chats:
        assert openai_problems(chat.body["messages"]) == []


@pytest_asyncio.fixture(loop_scope="session")
async def talk(
    tmp_path: Path, server: OpenAiServer, host: ProviderHost
) -> AsyncIterator[Conversation]:
    conversation = Conversation(Stage(tmp_path), server, host)
    yield conversation
    await conversation.runtime.aclose()


@pytest_asyncio.fixture(loop_scope="session")
async def impatient_talk(
    tmp_path: Path, server: OpenAiServer, impatient_host: ProviderHost
) -> AsyncIterator[Conversation]:
    conversation = Conversation(Stage(tmp_path), server, impatient_host)
    yield conversation
    await conversation.runtime.aclose()


def failed(events: list[AgentEvent]) -> str:
    """The error of a turn that failed and can be continued."""
    end = only(events, TurnFinished)
    assert (end.outcome, end.can_continue) == ("error", True)
    return end.error


def succeeded(events: list[AgentEvent]) -> bool:
    return only(events, TurnFinished).outcome == "done"


def shown_text(events: list[AgentEvent]) -> str:
    return "".join(event.text for event in of_kind(events, TextDelta))


# Refused


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(bad_key(), ("refused the key", "THE_KEY"), id="401"),
        pytest.param(
            failure(403, "Your account may not use this model."), ("THE_KEY", "may not"), id="403"
        ),
        pytest.param(no_such_model(), ("does not know", "/model"), id="404"),
        pytest.param(out_of_quota(), ("quota", "billing", "/model"), id="quota"),
        pytest.param(failure(402, "Payment required."), ("quota", "billing"), id="402"),
        pytest.param(failure(400, "tools: unknown field"), ("tools", "/model"), id="400"),
    ],
)
async def test_a_refusal_is_said_with_what_to_do_and_not_repeated(
    talk: Conversation, answer: Answer, words: tuple[str, ...]
) -> None:
    events = await talk.say("hello", answer)
    error = failed(events)
    assert [word for word in (*words, "some-model") if word not in error] == []
    assert len(of_kind(events, ReplyDiscarded)) == 1
    assert talk.waits.delays_s == []
    assert len(talk.server.chats) == 1
    assert roles(talk.runtime) == ["user"]
    assert succeeded(await talk.go_on(FINE))
    assert [reply.text for reply in talk.replies] == ["Fine."]


# Waited out


@pytest.mark.parametrize(("answer", "delay_s"), PASSING_FAULTS)
async def test_a_fault_that_passes_is_waited_out_in_sight_of_the_person(
    talk: Conversation, answer: Answer, delay_s: float | None
) -> None:
    events = await talk.say("hello", answer, FINE)
    assert succeeded(events)
    retry = only(events, RetryScheduled)
    assert (retry.attempt, retry.max_attempts) == (1, 3)
    assert talk.server.base_url in retry.reason
    assert "<" not in retry.reason
    assert talk.waits.delays_s == [retry.delay_s]
    assert retry.delay_s == delay_s if delay_s else 2 <= retry.delay_s <= 2.5
    assert roles(talk.runtime) == ["user", "assistant"]
    first, second = talk.server.chats
    assert first.body["messages"] == second.body["messages"]


@pytest.mark.parametrize(("answer", "delay_s"), PASSING_FAULTS)
async def test_after_a_tool_the_request_is_repeated_and_not_the_tool(
    talk: Conversation, answer: Answer, delay_s: float | None
) -> None:
    events = await talk.say("hello", Reply(tool_calls=(NOTE,)), answer, FINE)
    assert succeeded(events)
    assert len(of_kind(events, RetryScheduled)) == 1
    assert talk.times_run == 1
    assert roles(talk.runtime) == ["user", "assistant", "toolResult", "assistant"]


async def test_after_three_retries_it_is_said_and_can_be_continued(talk: Conversation) -> None:
    events = await talk.say("hello", *[overloaded()] * 4)
    assert "overloaded" in failed(events)
    assert [int(delay_s) // 2 * 2 for delay_s in talk.waits.delays_s] == [2, 4, 8]
    assert roles(talk.runtime) == ["user"]
    assert succeeded(await talk.go_on(FINE))


async def test_stopping_while_it_waits_sends_nothing_more(
    tmp_path: Path, server: OpenAiServer, host: ProviderHost
) -> None:
    is_waiting = asyncio.Event()

    async def sleep(delay_s: float) -> None:
        is_waiting.set()
        await asyncio.Event().wait()

    model = ModelRef("some-model", server.base_url, "THE_KEY")
    runtime = Stage(tmp_path).runtime(host, model=model, sleep=sleep)
    server.play(rate_limited("30"), FINE)
    watching = asyncio.create_task(collect(runtime.submit("hello")))
    await is_waiting.wait()
    runtime.abort()
    assert only(await watching, TurnFinished).outcome == "aborted"
    assert len(server.chats) == 1
    assert succeeded(await collect(runtime.continue_turn()))
    await runtime.aclose()


async def test_no_headers_at_all_is_waited_for_as_long_as_the_settings_say(
    impatient_talk: Conversation,
) -> None:
    events = await impatient_talk.say("hello", NoHeaders(), FINE)
    assert succeeded(events)
    assert f"{IMPATIENCE_S:g} s" in only(events, RetryScheduled).reason
    assert await asyncio.to_thread(impatient_talk.server.wait_for_disconnects)
    assert roles(impatient_talk.runtime) == ["user", "assistant"]


# Broken off


async def check_partial_reply(talk: Conversation, broken: Reply) -> None:
    """What came is kept and marked; going on sends it with a word after it."""
    events = await talk.say("hello", broken)
    error = failed(events)
    assert shown_text(events) == "The sky is "
    kept = only(events, ReplyFinished).message
    assert (kept.text, kept.stop_reason, kept.error_message) == ("The sky is ", "error", error)
    assert of_kind(events, RetryScheduled) == []
    assert len(talk.server.chats) == 1
    assert talk.replies == [kept]
    assert succeeded(await talk.go_on(Reply(text="blue.")))
    sent = talk.server.chats[-1].body["messages"][1:]
    assert [message["content"] for message in sent] == ["hello", "The sky is ", GO_ON]
    assert [reply.text for reply in talk.replies] == ["The sky is ", "blue."]


@pytest.mark.parametrize(
    "broken",
    [
        Reply(text="The sky is ", ending="reset"),
        Reply(text="The sky is ", ending="half"),
        Reply(text="The sky is ", ending="broken"),
        Reply(text="The sky is ", ending="error"),
        Reply(text="The sky is ", ending="close"),
        Reply(text="The sky is ", finish=""),
        Reply(text="The sky is ", finish="", done=False, usage=None),
        Reply(text="The sky is ", tool_calls=(NOTE,), ending="close"),
    ],
    ids=["reset", "half", "broken", "error event", "close", "no finish", "no end", "in a call"],
)
async def test_a_reply_that_breaks_off_is_kept_and_can_be_continued(
    talk: Conversation, broken: Reply
) -> None:
    await check_partial_reply(talk, broken)
    assert talk.times_run == 0


async def test_a_reply_that_falls_silent_is_kept_and_its_connection_closed(
    impatient_talk: Conversation,
) -> None:
    await check_partial_reply(impatient_talk, Reply(text="The sky is ", ending="hang"))
    assert impatient_talk.server.disconnects == 1


async def test_a_call_that_breaks_off_is_asked_for_again_and_run_once(talk: Conversation) -> None:
    events = await talk.say(
        "hello", Reply(tool_calls=(NOTE,), ending="close"), Reply(tool_calls=(NOTE,)), FINE
    )
    assert succeeded(events)
    assert len(of_kind(events, ReplyDiscarded)) == len(of_kind(events, RetryScheduled)) == 1
    assert talk.times_run == 1
    assert roles(talk.runtime) == ["user", "assistant", "toolResult", "assistant"]


# Replies that are no use


async def test_an_empty_reply_is_asked_for_once_more_and_then_said(talk: Conversation) -> None:
    events = await talk.say("hello", Reply(), Reply())
    assert "empty reply twice" in failed(events)
    assert "asking again" in only(events, Notice).text
    assert len(talk.server.chats) == 2
    assert succeeded(await talk.go_on(FINE))
    assert await talk.is_usable()


async def test_an_empty_reply_and_then_a_good_one_is_a_good_turn(talk: Conversation) -> None:
    assert succeeded(await talk.say("hello", Reply(), FINE))
    assert await talk.is_usable()


async def test_a_content_filter_is_said_and_not_asked_again(talk: Conversation) -> None:
    events = await talk.say("hello", Reply(text="I will", finish="content_filter"))
    end = only(events, TurnFinished)
    assert (end.outcome, len(talk.server.chats)) == ("error", 1)
    assert "content filter" in end.error
    assert await talk.is_usable()


async def test_a_reply_cut_by_its_length_can_be_continued(talk: Conversation) -> None:
    events = await talk.say("hello", Reply(text="one two", finish="length"))
    end = only(events, TurnFinished)
    assert (end.outcome, end.can_continue) == ("length", True)
    assert [reply.stop_reason for reply in talk.replies] == ["length"]
    assert succeeded(await talk.go_on(FINE))
    assert talk.server.chats[-1].body["messages"][-1]["content"] == GO_ON


# Calls that cannot be run


@pytest.mark.parametrize(
    ("call", "finish", "problem"),
    [
        pytest.param(Call("bash", '{"command": "echo r'), "length", "output limit", id="length"),
        pytest.param(NOTE, "length", "output limit", id="length after the call"),
        pytest.param(Call("bash", '{"command": "echo r'), None, "not valid JSON", id="cut"),
        pytest.param(Call("bash", "null"), None, "not a JSON object", id="null"),
        pytest.param(Call("bash", '["ls"]'), None, "not a JSON object", id="a list"),
        pytest.param(Call("bash", {"path": "x"}), None, "command", id="schema"),
        pytest.param(Call("bash", ""), None, "command", id="no arguments"),
        pytest.param(Call("teleport", {"to": "x"}), None, "teleport", id="unknown tool"),
        pytest.param(Call("no such/tool!", {}), None, "no such/tool!", id="impossible name"),
    ],
)
async def test_no_call_of_a_reply_runs_when_one_is_broken_and_the_model_can_mend_it(
    talk: Conversation, call: Call, finish: str | None, problem: str
) -> None:
    events = await talk.say(
        "hello", Reply(tool_calls=(NOTE, call), finish=finish), Reply(tool_calls=(NOTE,)), FINE
    )
    assert succeeded(events)
    refused = [event.message for event in of_kind(events, ToolFinished)[:2]]
    assert [result.is_error for result in refused] == [True, True]
    assert problem in refused[1].text
    assert talk.times_run == 1
    assert [result.is_error for result in talk.results] == [True, True, False]
    assert all(isinstance(c.arguments, dict) for reply in talk.replies for c in reply.tool_calls)
    for message in talk.server.chats[1].body["messages"]:
        for sent in message.get("tool_calls", []):
            assert isinstance(json.loads(sent["function"]["arguments"]), dict)


async def test_the_same_id_twice_becomes_two(talk: Conversation) -> None:
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


async def test_without_usage_the_numbers_are_marked_as_an_estimate(talk: Conversation) -> None:
    await talk.say("hello", Reply(text="Fine.", usage=None))
    assert talk.replies[0].usage.is_estimate
    assert talk.runtime.usage.is_estimate
    await talk.say("and now?", Reply(text="Fine.", usage=(500, 7)))
    assert not talk.replies[1].usage.is_estimate
    assert not talk.runtime.usage.is_estimate


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("done", [True, False])
async def test_line_ends_comments_and_a_missing_done_make_no_difference(
    talk: Conversation, newline: str, done: bool
) -> None:
    reply = Reply(text="Fine, as ever.", newline=newline, comments=True, done=done)
    events = await talk.say("hello", reply)
    assert succeeded(events)
    assert shown_text(events) == "Fine, as ever."


async def test_lone_surrogates_are_mended_before_they_are_shown_stored_or_sent(
    talk: Conversation,
) -> None:
    call = Call("bash", {"command": "echo '\ud800' >> ran.txt"})
    text = ("smile \ud83d", "\ude00 and \udc00", " alone")
    events = await talk.say("hello", Reply(text=text, thinking="\ud800"), Reply(text="x"))
    assert shown_text(events) == "smile 😀 and \ufffd alone"
    assert talk.replies[0].text == "smile 😀 and \ufffd alone"
    assert succeeded(await talk.say("\ud800 from the person", Reply(tool_calls=(call,)), FINE))
    assert "\\ud800" not in json.dumps(talk.server.chats[-1].body)
    assert await talk.is_usable()


# More than fits


async def with_history(talk: Conversation) -> None:
    for number in range(3):
        await talk.say(f"question {number}", Reply(text=("A long answer. " * 200,)))


async def test_an_overflow_is_compacted_away_and_the_request_repeated(talk: Conversation) -> None:
    await with_history(talk)
    before = len(talk.stored)
    events = await talk.say("and now?", context_overflow(), Reply(text=GOOD_SUMMARY), FINE)
    assert succeeded(events)
    finished = only(events, CompactionFinished)
    assert (finished.reason, finished.is_fallback) == ("overflow", False)
    assert finished.tokens_after < finished.tokens_before
    assert len(talk.stored) == before + 2
    sizes = [len(json.dumps(chat.body["messages"])) for chat in talk.server.chats]
    assert sizes[-1] < sizes[-3]
    assert "Make the greeting polite." in json.dumps(talk.server.chats[-1].body["messages"])


async def test_a_second_overflow_is_said_with_what_to_do(talk: Conversation) -> None:
    await with_history(talk)
    events = await talk.say(
        "and now?", context_overflow(), Reply(text=GOOD_SUMMARY), context_overflow()
    )
    assert "/compact" in failed(events)
    assert len(of_kind(events, CompactionFinished)) == 1
    assert succeeded(await talk.go_on(FINE))


async def test_an_overflow_without_a_word_of_it_is_compacted_away_too(talk: Conversation) -> None:
    await with_history(talk)
    events = await talk.say("and now?", Reply(finish="length"), Reply(text=GOOD_SUMMARY), FINE)
    assert succeeded(events)
    assert only(events, CompactionFinished).reason == "overflow"
    assert talk.replies[-1].text == "Fine."


async def test_no_output_at_all_twice_is_the_end_of_the_turn(talk: Conversation) -> None:
    await with_history(talk)
    nothing = Reply(finish="length")
    events = await talk.say("and now?", nothing, Reply(text=GOOD_SUMMARY), nothing)
    end = only(events, TurnFinished)
    assert (end.outcome, end.can_continue) == ("length", True)
    assert len(of_kind(events, CompactionFinished)) == 1
    assert await talk.is_usable()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(rate_limited("4"), "rate limited", id="429"),
        pytest.param(failure(503, "No capacity.", retry_after="4"), "overloaded", id="503"),
        pytest.param(failure(500, "Boom.", retry_after="4"), "server error", id="500"),
    ],
)
async def test_inside_a_compaction_a_fault_that_passes_is_waited_out(
    talk: Conversation, answer: Answer, reason: str
) -> None:
    await with_history(talk)
    talk.server.play(answer, Reply(text=GOOD_SUMMARY))
    events = await collect(talk.runtime.compact())
    phases = [event.phase for event in of_kind(events, CompactionProgress)]
    assert f"waiting 4 s ({reason})" in phases
    assert talk.waits.delays_s == [4.0]
    finished = only(events, CompactionFinished)
    assert (finished.is_fallback, finished.summarised_by) == (False, "some-model")
    assert await talk.is_usable()


@pytest.mark.parametrize(
    "answer",
    [bad_key(), out_of_quota(), Reply(text="## Go", ending="close"), NoHeaders(reset=True)],
    ids=["401", "quota", "cut", "reset"],
)
async def test_inside_a_compaction_any_other_fault_leads_to_a_summary_without_a_model(
    talk: Conversation, answer: Answer
) -> None:
    await with_history(talk)
    talk.server.play(answer)
    finished = only(await collect(talk.runtime.compact()), CompactionFinished)
    assert finished.is_fallback
    assert "some-model" in finished.note
    assert talk.waits.delays_s == []
    assert await talk.is_usable()
