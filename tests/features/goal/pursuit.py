"""Work on goals as ``/goal`` begins and ends it."""

from collections.abc import AsyncGenerator
from functools import partial

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import AgentEvent
from agent_tui.features.goal.events import GoalEnding
from agent_tui.features.goal.goal import Goal
from agent_tui.features.goal.part import GoalPart


def pursue(runtime: AgentRuntime, goal: Goal) -> AsyncGenerator[AgentEvent, None]:
    return runtime.carry_out(partial(runtime.part(GoalPart).begin, goal))


def end_goal(runtime: AgentRuntime, ending: GoalEnding, reason: str) -> tuple[AgentEvent, ...]:
    events: list[AgentEvent] = []
    runtime.part(GoalPart).end(ending, reason, events.append)
    return tuple(events)


def open_goal(runtime: AgentRuntime) -> Goal | None:
    return runtime.part(GoalPart).goal
