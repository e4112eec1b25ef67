"""A loop as its command runs it."""

from collections.abc import AsyncGenerator
from functools import partial

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import AgentEvent
from agent_tui.features.loops.part import LoopsPart
from agent_tui.features.loops.plan import LoopPlan


def run_loop(runtime: AgentRuntime, plan: LoopPlan) -> AsyncGenerator[AgentEvent, None]:
    return runtime.carry_out(partial(runtime.part(LoopsPart).run, plan))
