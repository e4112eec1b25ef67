"""The model's own scopes: entered and left with a tool, in turns and in loops."""

import asyncio

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.config import CompactionSettings
from agent_tui.events import (
    AgentEvent,
    CompactionFinished,
    Notice,
    ScopeEntered,
    ScopeLeft,
    ScopeProgress,
    ToolFinished,
    TurnFinished,
)
from agent_tui.features.context.undo import undo_compaction
from agent_tui.features.loops.plan import LoopPlan
from agent_tui.features.loops.scopes import ScopeState, scope_state
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.providers.base import ModelRequest, ProviderError
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.sessions.replay.scope_entries import ScopeExit, mark_of
from tests.features.loops.running import run_loop
from tests.support.compaction_ways import SUMMARY as WHOLE_SUMMARY
from tests.support.compaction_ways import talk
from tests.support.context_checks import assert_sendable, context_bytes
from tests.support.runtime import Stage, collect, of_kind, only

SUMMARY = "The parser is in a.py; b.py only calls it."
LONG = "I looked at every line of it with care and found nothing wrong. " * 20
ENTER = call("c1", "scope", action="enter", label="search", focus="which file")
EXIT = call("c3", "scope", action="exit")


def provider(*turns: Reply, summary: Reply | None = None) -> ScriptedProvider:
    """Turns as told, then a short text; each scope's summary is `summary`."""
    left = list(turns)

    def answer(request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            is_whole = "## Goal" in request.messages[0].text
            return Reply(text=WHOLE_SUMMARY) if is_whole else summary or Reply(text=SUMMARY)
        return left.pop(0) if left else Reply(text="Done.")

    return ScriptedProvider(answer)


def searching(summary: Reply | None = None) -> ScriptedProvider:
    """A turn in which a scope is entered, looked around in, and left."""
    return provider(
        Reply(tool_calls=(ENTER,)),
        Reply(text=LONG, tool_calls=(call("c2", "ls", path="."),)),
        Reply(text="That is it.", tool_calls=(EXIT,)),
        summary=summary,
    )


def contents(runtime: AgentRuntime) -> list[str]:
    return [message.text for message in runtime.conversation.request().messages]


def results(events: list[AgentEvent]) -> list[str]:
    return [event.message.text for event in of_kind(events, ToolFinished)]


def leaves(runtime: AgentRuntime) -> list[ScopeExit]:
    marks = map(mark_of, runtime.conversation.log.path_entries())
    return [mark for mark in marks if isinstance(mark, ScopeExit)]


async def test_a_scope_in_a_turn_is_summed_up_and_the_turn_goes_on(stage: Stage):
    model = searching()
    runtime = stage.runtime(model)
    events = await collect(runtime.submit("Where is the parser?"))
    assert only(events, TurnFinished).outcome == "done"
    assert only(events, ScopeEntered).label == "search"
    assert only(events, ScopeLeft).summary == SUMMARY
    asked = next(r for r in model.requests if r.purpose == "summary").messages[0].text
    assert "<focus>\nwhich file\n</focus>" in asked
    assert 'ls path="."' in asked
    assert "scope(" not in asked, "the scope's own calls are left out"
    entered, left = (results(events)[0], results(events)[2])
    assert entered.startswith("Entered search (")
    assert left.startswith("Left search (")
    texts = contents(runtime)
    assert [text[:16] for text in texts] == [
        "Where is the par",
        "",
        entered[:16],
        "==> search",
        "That is it.",
        left[:16],
        f"<summary>\n{SUMMARY}"[:16],
        "Done.",
    ]
    assert_sendable(runtime.conversation.log.path_entries())
    sent = model.requests[-1]
    assert sent.messages == runtime.conversation.request().messages[:-1]


async def test_a_failed_summary_is_told_to_the_model_and_the_originals_stay(stage: Stage):
    runtime = stage.runtime(searching(Reply(error=ProviderError("auth", "The key is wrong."))))
    events = await collect(runtime.submit("Where is the parser?"))
    assert only(events, TurnFinished).outcome == "done"
    assert "was not summarised. The key is wrong." in results(events)[2]
    assert LONG.strip() in [text.strip() for text in contents(runtime)]
    assert scope_state(runtime.conversation.log.path_entries()) == ScopeState()
    assert_sendable(runtime.conversation.log.path_entries())


async def test_esc_while_it_is_summed_up_leaves_all_there_and_retry_goes_on_from_it(stage: Stage):
    gated = [Reply(text=SUMMARY, gate=asyncio.Event())]
    turns = searching()
    model = ScriptedProvider(
        lambda request: (
            gated.pop() if request.purpose == "summary" and gated else turns._answer(request)
        )
    )
    runtime = stage.runtime(model)
    events: list[AgentEvent] = []
    async for event in runtime.submit("Where is the parser?"):
        events.append(event)
        if isinstance(event, ScopeProgress) and event.summary_chars:
            runtime.abort()
    assert only(events, TurnFinished).outcome == "aborted"
    assert "Interrupted" in results(events)[2]
    assert LONG in contents(runtime)
    assert_sendable(runtime.conversation.log.path_entries())
    again = await collect(runtime.continue_turn())
    assert only(again, ScopeLeft).summary == SUMMARY
    assert only(again, TurnFinished).outcome == "done"
    assert contents(runtime)[-1] == "Done.", "the turn itself went on too"
    assert LONG not in contents(runtime)
    assert_sendable(runtime.conversation.log.path_entries())


async def test_esc_while_a_scope_in_a_loop_is_summed_up_ends_both_as_they_are(stage: Stage):
    runtime = stage.runtime(searching(Reply(text=SUMMARY, gate=asyncio.Event())))
    events: list[AgentEvent] = []
    async for event in run_loop(runtime, LoopPlan("Go on.", 2, is_compressed=True)):
        events.append(event)
        if isinstance(event, ScopeProgress) and event.summary_chars:
            runtime.abort()
    assert [event.label for event in of_kind(events, ScopeLeft)] == ["search", "loop 2x: Go on."]
    assert only(events, TurnFinished).outcome == "aborted"
    assert scope_state(runtime.conversation.log.path_entries()) == ScopeState()
    assert LONG in contents(runtime)
    assert_sendable(runtime.conversation.log.path_entries())


@pytest.mark.parametrize("failing", [0, 1, 2])
async def test_three_deep_a_failure_at_any_depth_leaves_the_rest_to_be_summed_up(
    stage: Stage, failing: int
):
    names = ("one", "two", "three")
    turns = provider(
        *(
            Reply(text=LONG, tool_calls=(call(f"in-{name}", "scope", action="enter", label=name),))
            for name in names
        ),
        Reply(text=LONG, tool_calls=(call("ls", "ls"),)),
        *(
            Reply(text=LONG, tool_calls=(call(f"out-{name}", "scope", action="exit"),))
            for name in reversed(names)
        ),
    )
    asked = 0

    def answer(request: ModelRequest) -> Reply:
        nonlocal asked
        if request.purpose == "turn":
            return turns._answer(request)
        asked += 1
        is_failing = asked == failing + 1
        error = ProviderError("auth", "The key is wrong.") if is_failing else None
        return Reply(text="" if error else SUMMARY, error=error)

    runtime = stage.runtime(ScriptedProvider(answer))
    events = await collect(runtime.submit("Go on."))
    assert only(events, TurnFinished).outcome == "done"
    assert asked == 3
    summaries = [left.summary for left in of_kind(events, ScopeLeft)]
    assert summaries == ["" if depth == failing else SUMMARY for depth in range(3)]
    assert_sendable(runtime.conversation.log.path_entries())


async def test_what_is_not_open_cannot_be_left(stage: Stage):
    model = provider(
        Reply(tool_calls=(call("c1", "scope", action="exit"),)),
        Reply(tool_calls=(call("c2", "scope", action="break"),)),
        Reply(tool_calls=(call("c3", "scope", action="enter"),)),
        Reply(tool_calls=(call("c4", "scope", action="leave"),)),
    )
    events = await collect(stage.runtime(model).submit("Try."))
    told = results(events)
    assert told[:2] == ["You have no open scope."] * 2
    assert "needs a label" in told[2]
    assert "enter" in told[3]
    assert all(event.message.is_error for event in of_kind(events, ToolFinished))


async def test_a_scope_may_last_over_several_turns(stage: Stage):
    model = provider(
        Reply(tool_calls=(ENTER,)),
        Reply(text=LONG),
        Reply(text=LONG),
        Reply(tool_calls=(EXIT,)),
    )
    runtime = stage.runtime(model)
    await collect(runtime.submit("one"))
    await collect(runtime.submit("two"))
    assert len(scope_state(runtime.conversation.log.path_entries()).open_scopes) == 1
    await collect(runtime.submit("three"))
    assert leaves(runtime)[0].summary == SUMMARY
    assert "two" not in contents(runtime)


@pytest.mark.parametrize("is_compressed", [True, False])
async def test_what_the_model_left_open_in_a_loop_ends_with_it(stage: Stage, is_compressed: bool):
    model = provider(Reply(tool_calls=(ENTER,)), Reply(text=LONG), Reply(text=LONG))
    runtime = stage.runtime(model)
    events = await collect(run_loop(runtime, LoopPlan("Go on.", 2, is_compressed=is_compressed)))
    inner, outer = of_kind(events, ScopeLeft)
    assert (inner.label, outer.label) == ("search", "loop 2x: Go on.")
    assert (inner.summary, outer.summary) == (("", SUMMARY) if is_compressed else (SUMMARY, ""))
    assert scope_state(runtime.conversation.log.path_entries()) == ScopeState()
    assert_sendable(runtime.conversation.log.path_entries())


async def test_a_summary_inside_is_part_of_the_one_around_it(stage: Stage):
    model = searching()
    runtime = stage.runtime(model)
    await collect(run_loop(runtime, LoopPlan("Go on.", 1, is_compressed=True)))
    asked = [r.messages[0].text for r in model.requests if r.purpose == "summary"]
    assert len(asked) == 2
    assert f"Summary of search: {SUMMARY}" in asked[1]
    assert LONG.strip() not in asked[1], "what it stands for is not told again"
    assert "[Assistant calls]: scope" not in asked[1]
    assert [mark.label for mark in leaves(runtime)] == ["search", "loop 1x: Go on."]
    assert_sendable(runtime.conversation.log.path_entries())


async def test_many_scopes_of_one_name_are_no_going_in_circles(stage: Stage):
    rounds = [
        Reply(tool_calls=(call(f"{action}{n}", "scope", action=action, label="file"),))
        for n in range(8)
        for action in ("enter", "exit")
    ]
    events = await collect(stage.runtime(provider(*rounds)).submit("Each file."))
    assert only(events, TurnFinished).outcome == "done"
    assert not any("You have made this call" in text for text in results(events))


async def test_compactions_inside_a_loop_do_not_part_it(stage: Stage):
    """The beginning is summarised away while it runs: what is left is summed up at the end."""
    model = provider(*(Reply(text=f"{n} {LONG * 4}") for n in range(12)))
    runtime = stage.runtime(model, window=12_000, compaction=CompactionSettings())
    events = await collect(run_loop(runtime, LoopPlan("Look closely.", 12, is_compressed=True)))
    assert only(events, TurnFinished).outcome == "done"
    assert of_kind(events, CompactionFinished)
    assert any(
        isinstance(entry, CompactionEntry) for entry in runtime.conversation.log.path_entries()
    )
    texts = contents(runtime)
    assert len(texts) == 2
    assert "<way-so-far>" in texts[0]
    assert SUMMARY in texts[1]
    assert texts[1].endswith("<== loop 12x: Look closely.")
    assert_sendable(runtime.conversation.log.path_entries())


async def test_a_summed_up_scope_goes_through_a_manual_compaction_and_back(stage: Stage):
    runtime = stage.runtime(searching(), window=30_000)
    talk(runtime.conversation.log, 13)
    await collect(runtime.submit("Where is the parser?"))
    before = context_bytes(runtime.conversation.log.path_entries())
    parent = runtime.conversation.log.path
    await collect(runtime.compact())
    assert runtime.conversation.log.path != parent
    assert SUMMARY in "".join(contents(runtime))
    assert LONG not in contents(runtime)
    assert_sendable(runtime.conversation.log.path_entries())
    await undo_compaction(runtime)
    assert runtime.conversation.log.path == parent
    assert context_bytes(runtime.conversation.log.path_entries()) == before


async def test_a_scope_from_after_a_compaction_is_undone_before_it_and_comes_back_whole(
    stage: Stage,
):
    runtime = stage.runtime(searching(), window=30_000)
    talk(runtime.conversation.log, 13)
    await collect(runtime.compact())
    await collect(runtime.submit("Where is the parser?"))
    await undo_compaction(runtime)
    assert LONG in contents(runtime), "first the scope is taken back"
    await undo_compaction(runtime)
    assert contents(runtime)[0].startswith("Question 0")
    assert scope_state(runtime.conversation.log.path_entries()).pending is None
    assert LONG in contents(runtime)
    assert_sendable(runtime.conversation.log.path_entries())
    events = await collect(runtime.submit("And now?"))
    assert only(events, TurnFinished).outcome == "done"


async def test_a_session_that_is_only_read_is_not_offered_a_summary(stage: Stage):
    model = provider(Reply(text=LONG), summary=Reply(error=ProviderError("auth", "No.")))
    runtime = stage.runtime(model)
    await collect(run_loop(runtime, LoopPlan("Go on.", 1, is_compressed=True)))
    await runtime.aclose()
    reader = stage.runtime(provider())
    opened = await reader.sessions.open(str(runtime.conversation.log.path), mode="read-only")
    assert not any("/retry" in event.text for event in of_kind(list(opened), Notice))
