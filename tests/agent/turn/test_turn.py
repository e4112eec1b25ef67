import asyncio
from contextlib import aclosing

import pytest

from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.agent.turn.user_message import user_message
from agent_tui.errors import SessionError
from agent_tui.events import (
    ApprovalRequested,
    ContextChanged,
    Notice,
    QueueChanged,
    ReplyAwaited,
    ReplyDiscarded,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessageAdded,
)
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import AssistantMessage, ToolResultMessage, Usage, UserMessage
from agent_tui.providers.base import NoticeChunk, ProviderError
from agent_tui.providers.silence import Wait
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog
from tests.support.patience import PATIENCE_S
from tests.support.runtime import collect, of_kind, only, roles
from tests.support.waiting import WaitingProvider
from tests.support.wire_rules import openai_problems


async def test_a_plain_turn_is_recorded_before_it_is_shown(stage):
    runtime = stage.runtime([Reply(text="Hello there.")])
    seen = []
    async with aclosing(runtime.submit("hi")) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, UserMessageAdded | ReplyFinished):
                assert event.entry_id in {
                    entry.id for entry in runtime.conversation.log.path_entries()
                }
                assert event.entry_id.encode() in runtime.conversation.log.path.read_bytes()
    assert "".join(e.text for e in of_kind(seen, TextDelta)) == "Hello there."
    assert only(seen, TurnFinished).outcome == "done"
    assert isinstance(seen[0], UserMessageAdded)
    assert isinstance(seen[1], TurnStarted)
    assert of_kind(seen, ContextChanged)
    assert roles(runtime) == ["user", "assistant"]
    assert not runtime.is_busy


async def test_a_turn_is_on_the_disk_before_its_end_is_shown(stage, monkeypatch):
    synced = []
    monkeypatch.setattr(SessionLog, "sync", lambda log: synced.append(len(log.entries)))
    runtime = stage.runtime([Reply(text="Hello.")])
    async with aclosing(runtime.submit("hi")) as events:
        async for event in events:
            if isinstance(event, TurnFinished):
                assert synced == [2]
    assert synced == [2]


async def test_a_disk_that_fails_at_the_end_of_a_turn_is_told(stage, monkeypatch):
    def fail(log):
        raise SessionError("The disk is broken.")

    monkeypatch.setattr(SessionLog, "sync", fail)
    end = only(await collect(stage.runtime([Reply(text="Hello.")]).submit("hi")), TurnFinished)
    assert (end.outcome, end.error) == ("error", "The disk is broken.")


async def test_tools_run_and_their_results_go_back_to_the_model(stage):
    provider = ScriptedProvider(
        [
            Reply(tool_calls=(call("c1", "write", path="a.txt", content="one\n"),)),
            Reply(tool_calls=(call("c2", "bash", command="cat a.txt"),)),
            Reply(text="It says one."),
        ]
    )
    runtime = stage.runtime(provider)
    events = await collect(runtime.submit("write and read"))
    assert (stage.workspace / "a.txt").read_text() == "one\n"
    assert [e.message.is_error for e in of_kind(events, ToolFinished)] == [False, False]
    assert [e.call_id for e in of_kind(events, ToolStarted)] == ["c1", "c2"]
    last = provider.requests[-1].messages[-1]
    assert isinstance(last, ToolResultMessage)
    assert "one" in last.text


async def test_an_abort_keeps_the_partial_reply(stage):
    hold = asyncio.Event()
    runtime = stage.runtime([Reply(text="I was going to say", gate=hold), Reply(text="ok")])
    seen = []
    async with aclosing(runtime.submit("hi")) as events:
        async for event in events:
            seen.append(event)
            if "say" in "".join(e.text for e in of_kind(seen, TextDelta)):
                runtime.abort()
    assert only(seen, ReplyFinished).message.stop_reason == "aborted"
    assert seen[-1] == TurnFinished("aborted", can_continue=True)
    *_, partial_reply, stop = runtime.conversation.log.path_entries()
    assert partial_reply.message.text == "I was going to say"
    assert stop.text == "(The user stopped this turn here.)"
    events = await collect(runtime.submit("go on"))
    assert only(events, TurnFinished).outcome == "done"


@pytest.mark.parametrize("is_continued", [False, True])
async def test_the_model_is_told_that_a_turn_was_stopped_and_who_continues_it(stage, is_continued):
    runtime = stage.runtime([Reply(text="", gate=asyncio.Event()), Reply(text="ok")])
    async with aclosing(runtime.submit("rm -rf build")) as events:
        async for event in events:
            if isinstance(event, ReplyStarted):
                runtime.abort()
    again = runtime.continue_turn() if is_continued else runtime.submit("List the tests.")
    assert only(await collect(again), TurnFinished).outcome == "done"
    said = [m.text for m in stage.model.requests[-1].messages if isinstance(m, UserMessage)]
    newest = "(The user asks you to continue the stopped turn.)"
    stop = "(The user stopped this turn here.)"
    assert said == ["rm -rf build", stop, newest if is_continued else "List the tests."]


async def test_cancelling_the_watching_task_keeps_the_partial_reply_too(stage):
    hold = asyncio.Event()
    runtime = stage.runtime([Reply(text="I was going to say", gate=hold)])
    partial = asyncio.Event()

    async def watch():
        text = ""
        async with aclosing(runtime.submit("hi")) as events:
            async for event in events:
                text += event.text if isinstance(event, TextDelta) else ""
                if "say" in text:
                    partial.set()

    task = asyncio.create_task(watch())
    await partial.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    *_, partial_reply, stop = runtime.conversation.log.path_entries()
    assert partial_reply.message.text == "I was going to say"
    assert stop.text == "(The user stopped this turn here.)"
    assert not runtime.is_busy


async def test_an_abort_during_a_tool_answers_every_call(stage):
    calls = (
        call("c1", "bash", command="echo begun; sleep 100"),
        call("c2", "write", path="a.txt", content="x"),
    )
    runtime = stage.runtime([Reply(tool_calls=calls)])
    async with aclosing(runtime.submit("hi")) as events:
        seen = []
        async for event in events:
            seen.append(event)
            if isinstance(event, ToolStarted) and event.call_id == "c1":
                asyncio.get_running_loop().call_later(0.2, runtime.abort)
    results = of_kind(seen, ToolFinished)
    assert [r.call_id for r in results] == ["c1", "c2"]
    assert all(r.message.is_error for r in results)
    assert "interrupted after" in results[0].message.text
    request = runtime.conversation.request()
    assert openai_problems(openai_messages(request.system, request.messages)) == []


@pytest.mark.parametrize("steps", range(0, 60, 3))
async def test_wherever_an_abort_falls_every_event_has_its_counterpart(stage, steps):
    (stage.workspace / "a.txt").write_text("one\n")
    calls = (call("c1", "read", path="a.txt"), call("c2", "write", path="b.txt", content="two"))
    runtime = stage.runtime([Reply(text="Looking.", tool_calls=calls), Reply(text="Done.")])
    watching = asyncio.create_task(collect(runtime.submit("go")))
    for _ in range(steps):
        await asyncio.sleep(0)
    runtime.abort()
    events = await asyncio.wait_for(watching, PATIENCE_S)
    started = [event.call_id for event in of_kind(events, ToolStarted)]
    assert started == [event.call_id for event in of_kind(events, ToolFinished)]
    ends = len(of_kind(events, ReplyFinished)) + len(of_kind(events, ReplyDiscarded))
    assert len(of_kind(events, ReplyStarted)) == ends
    assert only(events, TurnFinished) is events[-1]
    messages = [
        e.message for e in runtime.conversation.log.path_entries() if isinstance(e, MessageEntry)
    ]
    assert openai_problems(openai_messages("", messages)) == []


async def test_a_rate_limit_is_retried_with_a_countdown(stage):
    limited = ProviderError("rate_limit", "Slow down.", retry_after_s=0.0)
    runtime = stage.runtime([Reply(error=limited), Reply(error=limited), Reply(text="ok")])
    events = await collect(runtime.submit("hi"))
    assert [e.attempt for e in of_kind(events, RetryScheduled)] == [1, 2]
    assert len(of_kind(events, ReplyDiscarded)) == 2
    assert only(events, TurnFinished).outcome == "done"
    assert roles(runtime) == ["user", "assistant"]


async def test_a_bad_key_is_not_retried_and_says_what_to_do(stage):
    refused = ProviderError("auth", "The key was refused.", "Set another key.")
    runtime = stage.runtime([Reply(error=refused), Reply(text="now it works")])
    end = only(await collect(runtime.submit("hi")), TurnFinished)
    assert (end.outcome, end.can_continue) == ("error", True)
    assert "Set another key." in end.error
    assert roles(runtime) == ["user"]
    assert only(await collect(runtime.continue_turn()), TurnFinished).outcome == "done"
    assert roles(runtime) == ["user", "assistant"]


class Waits:
    """A sleep that notes what was asked for and is over at once."""

    def __init__(self) -> None:
        self.delays_s: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        self.delays_s.append(delay_s)


async def test_a_reply_cut_in_mid_stream_is_kept_and_gone_on_from(stage):
    script = [Reply(text="half a rep", cut=True), Reply(text="ly")]
    runtime = stage.runtime(script, sleep=Waits().sleep)
    events = await collect(runtime.submit("hi"))
    kept, last = (event.message for event in of_kind(events, ReplyFinished))
    assert (kept.text, kept.stop_reason, last.text) == ("half a rep", "error", "ly")
    assert only(events, TurnFinished).outcome == "done"
    assert "The partial reply is kept" in only(events, RetryScheduled).reason
    assert stage.model.requests[-1].messages[-1].text == "half a rep"


async def test_a_steady_outage_ends_with_its_reason_after_minutes(stage):
    waits = Waits()
    outage = ProviderError("overloaded", "It is overloaded.")
    runtime = stage.runtime(lambda _request: Reply(error=outage), sleep=waits.sleep)
    end = only(await collect(runtime.submit("hi")), TurnFinished)
    assert (end.outcome, end.can_continue) == ("error", True)
    assert "It is overloaded." in end.error
    assert len(waits.delays_s) == 9
    assert sum(waits.delays_s) > 180


async def test_the_calls_beside_a_broken_one_are_run(stage):
    calls = (
        call("c1", "write", path="a.txt", content="x"),
        call("c2", "no_such_tool"),
    )
    runtime = stage.runtime([Reply(tool_calls=calls), Reply(text="sorry")])
    events = await collect(runtime.submit("hi"))
    assert (stage.workspace / "a.txt").read_text() == "x"
    first, second = of_kind(events, ToolFinished)
    assert not first.message.is_error
    assert second.message.is_error
    assert "no_such_tool" in second.message.text
    assert only(events, TurnFinished).outcome == "done"


async def test_a_call_by_another_agents_name_runs_as_ours_and_stays_as_it_was_made(stage):
    made = call("c1", "Write", file_path="a.txt", content="x", colour="red")
    runtime = stage.runtime([Reply(tool_calls=(made,)), Reply(text="done")])
    events = await collect(runtime.submit("hi"))
    started, finished = only(events, ToolStarted), only(events, ToolFinished)
    assert (started.name, started.arguments) == ("write", {"path": "a.txt", "content": "x"})
    assert finished.message.tool_name == "write"
    assert finished.message.text.endswith("(write has no argument colour: ignored.)")
    (reply,) = (e for e in of_kind(events, ReplyFinished) if e.message.tool_calls)
    assert reply.message.tool_calls == (made,)


async def test_calls_of_a_reply_cut_by_length_do_not_run(stage):
    cut = Reply(tool_calls=(call("c1", "write", path="a.txt", content="x"),), finish="length")
    runtime = stage.runtime([cut, Reply(text="again then")])
    await collect(runtime.submit("hi"))
    assert not (stage.workspace / "a.txt").exists()


async def test_an_empty_reply_is_asked_for_once_more(stage):
    runtime = stage.runtime([Reply(), Reply(text="here")])
    assert only(await collect(runtime.submit("hi")), TurnFinished).outcome == "done"
    runtime = stage.runtime([Reply(), Reply()])
    end = only(await collect(runtime.submit("hi")), TurnFinished)
    assert end.outcome == "error"
    assert "empty" in end.error


async def test_what_a_provider_tells_of_a_request_is_said_and_no_part_of_the_reply(stage):
    class Telling(ScriptedProvider):
        async def stream(self, request):
            yield NoticeChunk("The server takes no 'field': it is left out.")
            async with aclosing(super().stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk

    runtime = stage.runtime(Telling([Reply(text="Hello.")]))
    events = await collect(runtime.submit("hi"))
    assert Notice("info", "The server takes no 'field': it is left out.") in events
    assert only(events, ReplyFinished).message.text == "Hello."


async def test_waiting_for_words_is_told_by_the_minute(stage):
    waits = (Wait(30, 1), Wait(61, 1), Wait(75, 75), Wait(122, 122))
    runtime = stage.runtime(WaitingProvider([Reply(text="Hello.")], waits))
    events = await collect(runtime.submit("hi"))
    assert of_kind(events, ReplyAwaited) == [ReplyAwaited(61, True), ReplyAwaited(122, False)]
    assert only(events, ReplyFinished).message.text == "Hello."


async def test_a_silent_server_is_asked_once_more_and_no_oftener(stage):
    waits, silent = Waits(), ProviderError("timeout", "It went silent.")
    provider = ScriptedProvider(lambda _request: Reply(error=silent))
    runtime = stage.runtime(provider, sleep=waits.sleep, is_interactive=False)
    events = await collect(runtime.submit("hi"))
    assert len(provider.requests) == 2
    retry = only(events, RetryScheduled)
    assert (retry.attempt, retry.max_attempts) == (1, 1)


async def test_a_filtered_reply_is_said_and_not_repeated(stage):
    runtime = stage.runtime([Reply(text="well", finish="contentFilter")])
    end = only(await collect(runtime.submit("hi")), TurnFinished)
    assert "content filter" in end.error


async def test_a_steered_message_comes_before_the_next_request(stage):
    provider = ScriptedProvider([Reply(tool_calls=(call("c1", "ls"),)), Reply(text="done")])
    runtime = stage.runtime(provider)
    seen = []
    async with aclosing(runtime.submit("look")) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, ToolStarted):
                assert runtime.enqueue("and hurry") == (QueueChanged(("and hurry",)),)
    assert [m.role for m in provider.requests[1].messages] == [
        "user",
        "assistant",
        "toolResult",
        "user",
    ]
    assert [e.text for e in of_kind(seen, UserMessageAdded)] == ["look", "and hurry"]
    assert runtime.conversation.queue.shown == ()


async def test_steered_messages_bring_their_files_and_are_delivered_one_by_one(stage):
    (stage.workspace / "a.txt").write_text("alpha\n", encoding="utf-8")
    provider = ScriptedProvider([Reply(tool_calls=(call("c1", "ls"),)), Reply(text="done")])
    runtime = stage.runtime(provider)
    seen = []
    async with aclosing(runtime.submit("look")) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, ToolStarted):
                runtime.enqueue("see @a.txt", (), ("see",), shown="see it")
                assert runtime.enqueue("then stop") == (QueueChanged(("see it", "then stop")),)
    queues = [event.texts for event in of_kind(seen, QueueChanged)]
    assert queues == [("then stop",), ()]
    delivered = provider.requests[1].messages[3]
    assert delivered.text.endswith('<file path="a.txt">\nalpha\n</file>')
    assert isinstance(delivered, UserMessage)
    assert delivered.typed == ("see",)


@pytest.mark.parametrize("instead", [(), ("do it slowly",)])
async def test_a_message_taken_back_while_its_files_are_read_is_not_delivered(
    stage, monkeypatch, instead
):
    provider = ScriptedProvider([Reply(tool_calls=(call("c1", "ls"),)), Reply(text="done")])
    runtime = stage.runtime(provider)

    def reading(text, *arguments, **named):
        if text == "and hurry":
            runtime.conversation.queue.take_all()
            for other in instead:
                runtime.enqueue(other)
        return user_message(text, *arguments, **named)

    monkeypatch.setattr("agent_tui.agent.turn.turn.user_message", reading)
    seen = []
    async with aclosing(runtime.submit("look")) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, ToolStarted):
                runtime.enqueue("and hurry")
    assert [e.text for e in of_kind(seen, UserMessageAdded)] == ["look", *instead]
    assert only(seen, TurnFinished).outcome == "done"


async def test_a_message_queued_during_the_last_reply_goes_on_with_the_turn(stage):
    hold = asyncio.Event()
    runtime = stage.runtime([Reply(text="first", gate=hold), Reply(text="second")])
    seen = []
    async with aclosing(runtime.submit("one")) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, TextDelta) and event.text == "first":
                runtime.enqueue("two")
                hold.set()
    assert roles(runtime) == ["user", "assistant", "user", "assistant"]
    assert len(of_kind(seen, TurnFinished)) == 1


async def ask_and_answer(runtime, answer, text="go"):
    seen = []
    async with aclosing(runtime.submit(text)) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, ApprovalRequested):
                runtime.pending_approvals.answer(event.request.id, answer)
    return seen


async def test_an_approved_write_runs_and_a_refused_one_stops_the_turn(stage):
    write = call("c1", "write", path="a.txt", content="x")
    runtime = stage.runtime([Reply(tool_calls=(write,)), Reply(text="ok")], mode="ask")
    events = await ask_and_answer(runtime, ApprovalAnswer("once"))
    request = only(events, ApprovalRequested).request
    assert request.body_kind == "diff"
    assert "+x" in request.body
    assert (stage.workspace / "a.txt").read_text() == "x"

    other = call("c2", "write", path="b.txt", content="x")
    runtime = stage.runtime([Reply(tool_calls=(other,))], mode="ask")
    events = await ask_and_answer(runtime, ApprovalAnswer("no"))
    assert not (stage.workspace / "b.txt").exists()
    assert only(events, TurnFinished).outcome == "aborted"
    assert only(events, ToolFinished).message.tool_details.ending == "declined"


async def test_an_interrupt_before_the_answer_says_that_nothing_was_begun(stage):
    writes = tuple(call(f"c{n}", "write", path=f"{n}.txt", content="x") for n in range(2))
    runtime = stage.runtime([Reply(tool_calls=writes)], mode="ask")
    events = []
    async for event in runtime.submit("go"):
        events.append(event)
        if isinstance(event, ApprovalRequested):
            runtime.abort()
    results = [event.message for event in of_kind(events, ToolFinished)]
    assert [result.tool_details.ending for result in results] == ["cancelled", "cancelled"]
    assert all(result.text.startswith("Not run") for result in results)


async def test_a_no_with_words_goes_on_with_them(stage):
    provider = ScriptedProvider(
        [
            Reply(tool_calls=(call("c1", "write", path="a.txt", content="x"),)),
            Reply(text="fine"),
        ]
    )
    runtime = stage.runtime(provider, mode="ask")
    events = await ask_and_answer(runtime, ApprovalAnswer("no", "use b.txt"))
    assert "use b.txt" in provider.requests[1].messages[-1].text
    assert only(events, TurnFinished).outcome == "done"


async def test_a_session_rule_is_not_asked_for_twice(stage):
    command = "python3 -c 'print(1)'"
    script = [
        Reply(tool_calls=(call("c1", "bash", command=command),)),
        Reply(tool_calls=(call("c2", "bash", command=command),)),
        Reply(text="ok"),
    ]
    events = await ask_and_answer(stage.runtime(script, mode="ask"), ApprovalAnswer("session"))
    assert len(of_kind(events, ApprovalRequested)) == 1
    assert [e.message.is_error for e in of_kind(events, ToolFinished)] == [False, False]


async def test_rules_for_the_parts_of_a_command_allow_it_with_other_arguments(stage):
    command = "cd . && python3 tally.py {} | sort && make {}"
    script = [
        Reply(tool_calls=(call("c1", "bash", command=command.format("a", "all")),)),
        Reply(tool_calls=(call("c2", "bash", command=command.format("b c", "all -k")),)),
        Reply(text="ok"),
    ]
    runtime = stage.runtime(script, mode="ask")
    rules = ("bash(python3 tally.py *)", "bash(make all *)")
    events = await ask_and_answer(runtime, ApprovalAnswer("session", rules=rules))
    (asked,) = of_kind(events, ApprovalRequested)
    assert asked.request.part_rules == rules
    assert asked.request.session_rule == f"bash(= {command.format('a', 'all')})"


async def test_a_session_rule_and_what_was_decided_outlive_a_decision_about_trust(stage):
    command = "python3 -c 'print(1)'"
    calls = [Reply(tool_calls=(call(f"c{n}", "bash", command=command),)) for n in range(2)]
    script = [calls[0], Reply(text="ok"), calls[1], Reply(text="ok")]
    runtime = stage.runtime(script, mode="ask")
    first = await ask_and_answer(runtime, ApprovalAnswer("session"))
    assert len(of_kind(first, ApprovalRequested)) == 1
    decided = runtime.conversation.permissions.log.latest
    await runtime.sessions.apply_trust()
    assert runtime.conversation.permissions.log.latest == decided
    again = await ask_and_answer(runtime, ApprovalAnswer("no"))
    assert of_kind(again, ApprovalRequested) == []
    assert not only(again, ToolFinished).message.is_error


async def test_aborting_an_open_question_leaves_nothing_done(stage):
    write = call("c1", "write", path="a.txt", content="x")
    runtime = stage.runtime([Reply(tool_calls=(write,))], mode="ask")
    seen = []
    async with aclosing(runtime.submit("go")) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, ApprovalRequested):
                runtime.abort()
    assert not (stage.workspace / "a.txt").exists()
    assert only(seen, ToolFinished).message.is_error
    assert seen[-1].outcome == "aborted"


async def test_without_a_person_what_would_ask_is_refused(stage):
    write = call("c1", "write", path="a.txt", content="x")
    runtime = stage.runtime(
        [Reply(tool_calls=(write,)), Reply(text="pity")], mode="ask", is_interactive=False
    )
    events = await collect(runtime.submit("go"))
    assert not of_kind(events, ApprovalRequested)
    assert only(events, ToolFinished).message.is_error
    assert not (stage.workspace / "a.txt").exists()


async def test_a_full_disk_ends_the_turn_with_one_clear_line(stage):
    runtime = stage.runtime([Reply(text="hello")])
    stage.sessions.parent.mkdir(exist_ok=True)
    stage.sessions.write_text("a file where the folder should be")
    end = only(await collect(runtime.submit("hi")), TurnFinished)
    assert end.outcome == "error"
    assert "sessions" in end.error
    assert not runtime.is_busy


async def test_totals_add_up_what_the_provider_counted(stage):
    usage = Usage(input=100, output=20, cache_read=30, total_tokens=150)
    runtime = stage.runtime([Reply(text="a", usage=usage), Reply(text="b", usage=usage)])
    await collect(runtime.submit("one"))
    await collect(runtime.submit("two"))
    assert (
        runtime.conversation.totals.input_tokens,
        runtime.conversation.totals.output_tokens,
    ) == (260, 40)
    assert runtime.conversation.usage.used == 150
    assert not runtime.conversation.usage.is_estimate


async def test_call_ids_repeated_by_a_server_are_made_unique(stage):
    script = [
        Reply(tool_calls=(call("same", "ls"),)),
        Reply(tool_calls=(call("same", "ls"),)),
        Reply(text="ok"),
    ]
    runtime = stage.runtime(script)
    await collect(runtime.submit("go"))
    ids = [
        c.id
        for e in runtime.conversation.log.path_entries()
        if isinstance(e, MessageEntry) and isinstance(e.message, AssistantMessage)
        for c in e.message.tool_calls
    ]
    assert len(ids) == len(set(ids)) == 2


async def test_what_would_just_fit_is_sent_with_less_room_for_the_reply(stage):
    def answer(request):
        is_refused = 3_200 + request.max_output_tokens > 4_096
        error = ProviderError("context_overflow", "The prompt is too long.")
        return Reply(error=error) if is_refused else Reply(text="Hi.")

    provider = ScriptedProvider(answer)
    events = await collect(stage.runtime(provider, window=4_096).submit("hello"))
    assert only(events, TurnFinished).outcome == "done"
    assert [request.max_output_tokens for request in provider.requests] == [1_000, 250]


@pytest.mark.parametrize(("count", "outcome"), [(256, "done"), (257, "error")])
async def test_a_reply_that_floods_with_calls_is_stopped_and_none_is_run(stage, count, outcome):
    calls = tuple(call(f"c{n}", "ls", path=".", limit=n + 1) for n in range(count))
    runtime = stage.runtime([Reply("All:", tool_calls=calls), Reply(text="done")])
    events = await collect(runtime.submit("go"))
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].outcome == outcome
    assert len([e for e in events if isinstance(e, ToolFinished)]) == (count if count < 257 else 0)
