import asyncio
import threading

import pytest

from agent_tui.agent.activity import Emit
from agent_tui.agent.gate import ApprovalGate
from agent_tui.agent.tool_calls import ToolRunner, ToolServices
from agent_tui.events import AgentEvent, ToolFinished, ToolStarted
from agent_tui.messages import JsonObject
from agent_tui.providers.scripted import call
from agent_tui.tools.base import NoHistory, PreparedCall, Toolbox, ToolContext, ToolOutput
from agent_tui.tools.registry import default_toolbox


class SlowToolbox:
    """The usual tools behind a look ahead that takes until `go_on` is set."""

    def __init__(self) -> None:
        self._tools: Toolbox = default_toolbox()
        self.specs, self.short_specs = self._tools.specs, self._tools.short_specs
        self.check = self._tools.check
        self.is_looking = threading.Event()
        self.go_on = threading.Event()

    def prepare(self, name: str, arguments: JsonObject, context: ToolContext) -> PreparedCall:
        self.is_looking.set()
        self.go_on.wait()
        return self._tools.prepare(name, arguments, context)


async def never_compacted(_focus: str, _emit: Emit) -> ToolOutput:
    raise AssertionError


async def test_a_call_interrupted_while_it_is_looked_at_is_announced_before_its_result(stage):
    (stage.workspace / "a.txt").write_text("one\n")
    runtime = stage.runtime([])
    toolbox, events = SlowToolbox(), list[AgentEvent]()
    services = ToolServices(
        toolbox=toolbox,
        approvals=runtime.approvals,
        gate=ApprovalGate(),
        output_dir=stage.folder / "outputs",
        environ={},
        bash_timeout_s=10,
        compact=never_compacted,
        history=NoHistory,
    )
    runner = ToolRunner(runtime.conversation, services, events.append)
    calls = (call("c1", "read", path="a.txt"), call("c2", "read", path="a.txt"))
    running = asyncio.create_task(runner.run_all(calls))
    await asyncio.to_thread(toolbox.is_looking.wait)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    toolbox.go_on.set()
    ids = [(type(e), e.call_id) for e in events if isinstance(e, ToolStarted | ToolFinished)]
    assert ids == [(kind, c.id) for c in calls for kind in (ToolStarted, ToolFinished)]
