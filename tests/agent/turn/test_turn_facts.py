"""A turn tells at its end how long it took and which files it changed."""

from dataclasses import dataclass

import pytest

from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.events import (
    AgentEvent,
    ApprovalRequested,
    ToolFinished,
    TurnFinished,
    TurnRecorded,
)
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import TurnFacts
from agent_tui.sessions.context import build_context, extend_context
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.notes import turn_facts_in
from tests.support.runtime import Stage, collect, of_kind


@dataclass
class Clock:
    """A clock that goes on only when it is looked at, or when a test moves it."""

    now: float = 100.0
    step_s: float = 0.0

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


def write(path: str, content: str = "x\n", call_id: str = "") -> Reply:
    return Reply(tool_calls=(call(call_id or path, "write", path=path, content=content),))


def facts_of(events: list[AgentEvent]) -> list[TurnFacts]:
    return [event.facts for event in of_kind(events, TurnRecorded)]


async def test_the_files_that_a_turn_changed_are_told_and_in_the_file(stage: Stage):
    outside = stage.folder / "b.txt"
    runtime = stage.runtime([write("src/a.py"), write(str(outside)), Reply("Done.")])
    events = await collect(runtime.submit("go"))
    assert facts_of(events) == [TurnFacts(changed=("src/a.py", str(outside)))]
    assert isinstance(events[-1], TurnFinished)
    path = runtime.conversation.log.path
    assert path is not None
    with SessionLog.open(path, read_only=True) as log:
        assert list(filter(None, map(turn_facts_in, log.entries))) == facts_of(events)


async def test_only_what_the_turn_itself_changed_is_told(stage: Stage):
    runtime = stage.runtime([write("a.py"), Reply("One."), write("b.py"), Reply("Two.")])
    await collect(runtime.submit("go"))
    events = await collect(runtime.submit("on"))
    assert facts_of(events) == [TurnFacts(changed=("b.py",))]


async def test_a_file_that_is_as_it_was_before_the_turn_is_not_told(stage: Stage):
    (stage.workspace / "c.py").write_text("old\n")
    look = Reply(tool_calls=(call("c1", "read", path="c.py"),))
    there = write("c.py", "new\n", "there")
    back = write("c.py", "old\n", "back")
    made = write("d.py")
    runtime = stage.runtime([look, there, back, made, Reply("Done.")])
    events = await collect(runtime.submit("go"))
    assert (stage.workspace / "c.py").read_text() == "old\n"
    assert facts_of(events) == [TurnFacts(changed=("d.py",))]


@pytest.mark.parametrize(("step_s", "told_ms"), [(4.0, []), (125.0, [125_000])])
async def test_talk_tells_its_time_where_it_was_long(
    stage: Stage, step_s: float, told_ms: list[int]
):
    runtime = stage.runtime([Reply("A story.")], clock=Clock(step_s=step_s))
    events = await collect(runtime.submit("tell me a story"))
    assert [facts.elapsed_ms for facts in facts_of(events)] == told_ms


@pytest.mark.parametrize(("step_s", "told_ms"), [(0.3, []), (2.0, [6_000])])
async def test_work_tells_its_time_from_a_second_on_and_so_does_each_call(
    stage: Stage, step_s: float, told_ms: list[int]
):
    look = Reply(tool_calls=(call("c1", "bash", command="true"),))
    runtime = stage.runtime([look, Reply("Done.")], clock=Clock(step_s=step_s))
    events = await collect(runtime.submit("go"))
    assert [facts.elapsed_ms for facts in facts_of(events)] == told_ms
    (finished,) = of_kind(events, ToolFinished)
    assert finished.message.tool_details.elapsed_ms == (2_000 if told_ms else 0)


async def test_the_wait_for_an_answer_is_no_time_of_the_turn_or_the_call(stage: Stage):
    clock = Clock()
    runtime = stage.runtime([write("a.py"), Reply("Done.")], mode="ask", clock=clock)
    events: list[AgentEvent] = []
    async for event in runtime.submit("go"):
        events.append(event)
        if isinstance(event, ApprovalRequested):
            clock.now += 600
            runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("once"))
    assert facts_of(events) == [TurnFacts(changed=("a.py",))]
    (finished,) = of_kind(events, ToolFinished)
    assert finished.message.tool_details.elapsed_ms == 0


async def test_the_context_of_the_next_turn_only_grows_over_the_facts_of_the_last(stage: Stage):
    runtime = stage.runtime([write("a.py"), Reply("Done.")])
    await collect(runtime.submit("go"))
    log = runtime.conversation.log
    path = log.path_entries()
    assert turn_facts_in(path[-1]) is not None
    known = build_context(path[:-1])
    assert extend_context(known, path[:-1], path) == build_context(path)
