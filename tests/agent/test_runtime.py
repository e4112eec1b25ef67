import asyncio
from contextlib import aclosing
from typing import NoReturn

import pytest

from agent_tui.compaction.policy import Breaker
from agent_tui.compaction.strategies.tiered import TieredStrategy
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.events import (
    BashFinished,
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    ContextChanged,
    ContextWarning,
    Notice,
    ReplyStarted,
    SessionChanged,
    TurnFinished,
)
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry
from tests.support.patience import PATIENCE_S
from tests.support.runtime import GOOD_SUMMARY, collect, lines_of, of_kind, only, summary_or

LONG_REPLY = Reply(text="I looked at the code and it is as you say. " * 60)


async def talk(runtime, *texts):
    for text in texts:
        await collect(runtime.submit(text))


async def test_compact_goes_on_in_a_new_file_and_leaves_the_old_one_alone(stage):
    provider = ScriptedProvider(summary_or(LONG_REPLY))
    runtime = stage.runtime(provider)
    await talk(runtime, "never use tabs", "look at greet.py", "and now?")
    parent, before = runtime.conversation.log, lines_of(runtime)
    events = await collect(runtime.compact("the greeting"))
    finished = only(events, CompactionFinished)
    assert finished.tokens_after < finished.tokens_before
    assert not finished.is_fallback
    assert parent.path.read_bytes() == before
    assert runtime.conversation.log.path != parent.path
    assert only(events, SessionChanged).reason == "compacted"
    header = runtime.conversation.log.header
    assert header.parent_session == str(parent.path)
    assert header.compaction.summary == finished.summary
    assert "the greeting" in provider.requests[-1].messages[-1].text
    context = build_context(runtime.conversation.log.path_entries())
    assert "## Goal" in context.messages[0].message.text
    assert "never use tabs" in context.messages[0].message.text
    assert runtime.conversation.usage.is_estimate
    await talk(runtime, "go on")
    assert "## Goal" in provider.requests[-1].messages[0].text


async def test_a_second_compaction_is_given_the_first_summary(stage):
    provider = ScriptedProvider(summary_or(LONG_REPLY))
    runtime = stage.runtime(provider)
    await talk(runtime, "one", "two")
    await collect(runtime.compact())
    await talk(runtime, "three", "four")
    await collect(runtime.compact())
    asked = [r for r in provider.requests if r.purpose == "summary"]
    assert len(asked) == 2
    assert "<summary>" in asked[1].messages[0].text
    assert "Make the greeting polite." in asked[1].messages[0].text
    assert asked[1].messages[-1].text.startswith("[This is from the program")


async def test_compacting_without_a_working_model_falls_back_to_the_ledger(stage):
    def script(request):
        if request.purpose == "summary":
            return Reply(error=ProviderError("auth", "No key."))
        return LONG_REPLY

    runtime = stage.runtime(script)
    await talk(runtime, "always write tests first", "two", "three")
    finished = only(await collect(runtime.compact()), CompactionFinished)
    assert finished.is_fallback
    assert "always write tests first" in finished.summary
    assert "No key." in finished.note


async def test_aborting_a_compaction_writes_nothing(stage):
    hold = asyncio.Event()

    def script(request):
        return Reply(text=GOOD_SUMMARY, gate=hold) if request.purpose == "summary" else LONG_REPLY

    runtime = stage.runtime(script)
    await talk(runtime, "one", "two")
    before, files = lines_of(runtime), set(stage.sessions.rglob("*.jsonl"))
    seen = []
    async with aclosing(runtime.compact()) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, CompactionProgress) and event.summary_chars:
                runtime.abort()
    assert "cancelled" in only(seen, CompactionFailed).message
    assert lines_of(runtime) == before
    assert set(stage.sessions.rglob("*.jsonl")) == files
    assert not runtime.is_busy


@pytest.mark.parametrize("steps", range(0, 200, 8))
async def test_wherever_an_abort_of_a_compaction_falls_the_session_is_the_one_announced(
    stage, steps
):
    runtime = stage.runtime(summary_or(LONG_REPLY))
    await talk(runtime, "one", "two")
    session_id = runtime.conversation.log.header.id
    watching = asyncio.create_task(collect(runtime.compact()))
    for _ in range(steps):
        await asyncio.sleep(0 if steps % 16 else 0.0005)
    runtime.abort()
    events = await asyncio.wait_for(watching, PATIENCE_S)
    announced = [event.session_id for event in of_kind(events, SessionChanged)]
    assert runtime.conversation.log.header.id == [session_id, *announced][-1]
    assert len(announced) == len(of_kind(events, CompactionFinished))
    assert runtime.conversation.usage.used > 0


async def test_an_empty_session_has_nothing_to_compact(stage):
    runtime = stage.runtime([])
    failed = only(await collect(runtime.compact()), CompactionFailed)
    assert "Nothing to compact" in failed.message
    assert not list(stage.sessions.rglob("*.jsonl"))


async def test_a_full_window_is_compacted_in_place_and_the_work_goes_on(stage):
    full = Usage(input=9_000, output=100, total_tokens=9_100)
    replies = iter(
        [
            Reply(text=LONG_REPLY.text),
            Reply(text=LONG_REPLY.text),
            Reply(text="w", tool_calls=(call("c1", "ls"),), usage=full),
            Reply(text="and on it goes"),
        ]
    )

    def script(request):
        return Reply(text=GOOD_SUMMARY) if request.purpose == "summary" else next(replies)

    runtime = stage.runtime(script, window=10_000)
    await talk(runtime, "one", "two")
    path = runtime.conversation.log.path
    events = await collect(runtime.submit("three"))
    finished = only(events, CompactionFinished)
    assert finished.reason == "threshold"
    assert only(events, TurnFinished).outcome == "done"
    assert of_kind(events, ContextWarning)[0].level == "trigger"
    assert runtime.conversation.log.path == path
    assert any(
        isinstance(entry, CompactionEntry) for entry in runtime.conversation.log.path_entries()
    )


async def test_automatic_compaction_can_be_switched_off(stage):
    full = Usage(input=9_000, output=100, total_tokens=9_100)
    script = [Reply(text="a"), Reply(text="b", usage=full), Reply(text="c")]
    runtime = stage.runtime(script, window=10_000, compaction=CompactionSettings(auto=False))
    await talk(runtime, "one", "two")
    events = await collect(runtime.submit("three"))
    assert not of_kind(events, CompactionFinished)
    assert runtime.conversation.usage.percent >= 90


async def test_an_overflow_is_compacted_and_tried_once_more(stage):
    overflow = ProviderError("context_overflow", "Too long.")
    replies = iter([LONG_REPLY, LONG_REPLY, Reply(error=overflow), Reply(text="now it fits")])

    def script(request):
        return Reply(text=GOOD_SUMMARY) if request.purpose == "summary" else next(replies)

    runtime = stage.runtime(script)
    await talk(runtime, "one", "two")
    events = await collect(runtime.submit("three"))
    assert only(events, CompactionFinished).reason == "overflow"
    assert only(events, TurnFinished).outcome == "done"


async def test_a_second_overflow_in_a_row_is_said(stage):
    overflow = Reply(error=ProviderError("context_overflow", "Too long."))
    provider = ScriptedProvider(
        [LONG_REPLY, LONG_REPLY, overflow, Reply(text=GOOD_SUMMARY), overflow]
    )
    runtime = stage.runtime(provider)
    await talk(runtime, "one", "two")
    events = await collect(runtime.submit("three"))
    assert only(events, CompactionFinished).reason == "overflow"
    assert only(events, TurnFinished).outcome == "error"
    assert "Too long." in only(events, TurnFinished).error
    assert provider.remaining == 0


async def test_the_bar_drops_before_the_request_that_follows_an_overflow(stage):
    full = Usage(input=7_000, output=100, total_tokens=7_100)
    overflow = Reply(error=ProviderError("context_overflow", "Too long."))
    last_full = Reply(text=LONG_REPLY.text, usage=full)
    script = [LONG_REPLY, last_full, overflow, Reply(text=GOOD_SUMMARY), Reply(text="now it fits")]
    runtime = stage.runtime(script, window=10_000)
    await talk(runtime, "one", "two")
    events = await collect(runtime.submit("three"))
    after = events[events.index(only(events, CompactionFinished)) :]
    between = of_kind(
        after[: [isinstance(e, ReplyStarted) for e in after].index(True)], ContextChanged
    )
    assert between
    assert between[-1].usage.is_estimate
    assert between[-1].usage.used < 7_100


async def test_compaction_that_keeps_failing_stops_with_one_notice(stage, monkeypatch):
    async def fail(*_arguments: object) -> NoReturn:
        raise CompactionError("The summary would not be smaller.")

    monkeypatch.setattr(TieredStrategy, "_summarise", fail)
    replies = [
        Reply(text=LONG_REPLY.text, usage=Usage(input=size, output=100, total_tokens=size))
        for size in (2_000, 7_000, 8_100, 9_200, 10_300, 11_400)
    ]
    runtime = stage.runtime(replies, window=10_000)
    events = [event for n in range(6) for event in await collect(runtime.submit(f"message {n}"))]
    assert len(of_kind(events, CompactionFailed)) == 3
    stopped = [notice for notice in of_kind(events, Notice) if "stopped" in notice.text]
    assert ["after 3 failures" in notice.text for notice in stopped] == [True]


async def test_a_conversation_with_nothing_to_compact_is_no_failure(stage):
    full = Usage(input=9_000, output=100, total_tokens=9_100)
    runtime = stage.runtime([Reply(text="a", usage=full)] * 3, window=10_000)
    events = [event for n in range(3) for event in await collect(runtime.submit(f"message {n}"))]
    assert not of_kind(events, CompactionFailed)
    assert runtime.conversation.breaker == Breaker()
    assert [event.outcome for event in of_kind(events, TurnFinished)] == ["done"] * 3


async def test_the_cost_of_a_summary_is_part_of_the_totals_also_when_resumed(stage):
    used = Usage(input=500, output=50, total_tokens=550)
    overflow = Reply(error=ProviderError("context_overflow", "Too long."))
    long_reply = Reply(text=LONG_REPLY.text, usage=used)
    summary = Reply(text=GOOD_SUMMARY, usage=used)
    runtime = stage.runtime(
        [long_reply, long_reply, overflow, summary, Reply(text="c", usage=used)]
    )
    await talk(runtime, "one", "two", "three")
    assert (
        runtime.conversation.totals.input_tokens,
        runtime.conversation.totals.output_tokens,
    ) == (2_000, 200)
    totals = runtime.conversation.totals
    await runtime.aclose()
    resumed = stage.runtime([])
    await resumed.sessions.open(str(runtime.conversation.log.path))
    assert resumed.conversation.totals == totals


async def test_another_model_shows_at_once_what_the_conversation_fills_of_its_window(stage):
    windows = {"scripted/test": 100_000, "scripted/small": 8_000}
    runtime = stage.runtime([LONG_REPLY], windows=windows)
    await talk(runtime, "one")
    before = runtime.conversation.usage
    events = runtime.set_model(ModelRef("scripted/small"))
    shown = only(list(events), ContextChanged).usage
    assert shown == runtime.conversation.usage
    assert (shown.used, shown.window, shown.is_estimate) == (before.used, 8_000, True)


async def test_opening_the_session_that_is_open_says_so_and_keeps_it(stage):
    runtime = stage.runtime([LONG_REPLY])
    await talk(runtime, "one")
    log = runtime.conversation.log
    (notice,) = await runtime.sessions.open(log.header.id)
    assert isinstance(notice, Notice)
    assert "already open" in notice.text
    assert runtime.conversation.log is log
    runtime.sessions.rename("still writable")


async def test_a_replay_serves_until_the_log_grows(stage):
    runtime = stage.runtime([LONG_REPLY, LONG_REPLY])
    await talk(runtime, "one")
    first = runtime.conversation.context()
    await runtime.refresh_usage()
    assert runtime.conversation.context() is first
    await talk(runtime, "two")
    assert len(runtime.conversation.context().messages) == 4


async def test_a_resumed_session_sees_what_the_live_one_saw(stage):
    provider = ScriptedProvider(summary_or(LONG_REPLY))
    runtime = stage.runtime(provider)
    await talk(runtime, "one", "two")
    await collect(runtime.compact())
    await talk(runtime, "three")
    live = runtime.conversation.request().messages
    session_id = runtime.conversation.log.header.id
    await runtime.aclose()

    again = stage.runtime(provider)
    events = await again.sessions.open(session_id)
    assert only(list(events), SessionChanged).reason == "resumed"
    assert again.conversation.request().messages == live
    assert again.conversation.totals == runtime.conversation.totals
    await again.aclose()


async def test_resuming_takes_up_the_model_the_name_and_the_plan(stage):
    todos = [{"text": "look", "status": "completed"}, {"text": "mend", "status": "pending"}]
    script = [Reply(tool_calls=(call("c1", "todo", todos=todos),)), Reply(text="ok")]
    runtime = stage.runtime(script)
    await talk(runtime, "plan it")
    runtime.set_model(ModelRef("scripted/other"))
    runtime.set_thinking("high")
    runtime.sessions.rename("the plan")
    await runtime.aclose()

    again = stage.runtime([])
    await again.sessions.open("the plan")
    assert again.conversation.model.name == "scripted/other"
    assert again.conversation.thinking == "high"
    assert [todo.text for todo in again.conversation.todos] == ["look", "mend"]
    assert again.conversation.log.name == "the plan"


async def test_a_session_leads_back_to_a_server_on_this_machine_but_to_no_other(stage):
    async def model_after_resuming(base_url):
        runtime = stage.runtime([LONG_REPLY])
        runtime.set_model(ModelRef("openai/qwen", base_url))
        await talk(runtime, "one")
        await runtime.aclose()
        again = stage.runtime([])
        await again.sessions.open(runtime.conversation.log.header.id)
        await again.aclose()
        return again.conversation.model

    local = "http://127.0.0.1:8080/v1"
    assert await model_after_resuming(local) == ModelRef("openai/qwen", local)
    assert (await model_after_resuming("https://elsewhere.example/v1")).name == "scripted/test"


async def test_a_new_session_leaves_the_old_one_whole(stage):
    runtime = stage.runtime([LONG_REPLY])
    await talk(runtime, "one")
    old, before = runtime.conversation.log.path, lines_of(runtime)
    events = await runtime.sessions.start_new()
    assert only(list(events), SessionChanged).reason == "new"
    assert runtime.conversation.log.path_entries() == ()
    assert old.read_bytes() == before
    assert runtime.conversation.totals.output_tokens == 0


async def test_an_unused_session_leaves_no_file(stage):
    runtime = stage.runtime([])
    runtime.set_model(ModelRef("scripted/other"))
    await runtime.refresh_usage()
    await runtime.aclose()
    assert not list(stage.sessions.rglob("*.jsonl")) if stage.sessions.exists() else True
    assert runtime.conversation.log.header.model_id == "other"


async def test_a_command_of_the_persons_is_recorded_and_reaches_the_model(stage):
    provider = ScriptedProvider([Reply(text="I see")])
    runtime = stage.runtime(provider, mode="plan")
    finished = only(await collect(runtime.run_bash("echo seen", in_context=True)), BashFinished)
    assert finished.message.exit_code == 0
    hidden = await collect(runtime.run_bash("echo hidden", in_context=False))
    assert only(hidden, BashFinished).message.exclude_from_context
    await talk(runtime, "what did it say?")
    sent = "".join(str(m) for m in provider.requests[0].messages)
    assert "seen" in sent
    assert "hidden" not in sent


async def test_an_aborted_command_keeps_what_it_printed(stage):
    runtime = stage.runtime([])
    seen = []
    async with aclosing(runtime.run_bash("echo begun; sleep 100", in_context=True)) as events:
        async for event in events:
            seen.append(event)
            if getattr(event, "text", "").startswith("begun"):
                runtime.abort()
    message = only(seen, BashFinished).message
    assert message.cancelled
    assert "begun" in message.output
