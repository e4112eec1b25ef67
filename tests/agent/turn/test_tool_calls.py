import asyncio
import threading
from typing import Any

import pytest

from agent_tui.agent.activity import Emit
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer, PendingApprovals
from agent_tui.agent.turn.tool_calls import ToolRunner
from agent_tui.agent.turn.tool_services import ToolServices
from agent_tui.events import AgentEvent, ApprovalRequested, ToolFinished, ToolStarted
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import JsonObject, TextContent
from agent_tui.tools import read as read_tool
from agent_tui.tools import write as write_tool
from agent_tui.tools.base import (
    NoHistory,
    PreparedCall,
    Toolbox,
    ToolContext,
    ToolOutput,
)
from agent_tui.tools.registry import default_toolbox
from tests.support.patience import PATIENCE_S
from tests.support.runtime import Stage, collect, of_kind

_SCRIPT = "ls\nmkdir -p out\n" + "echo built > out/log\n" * 60 + "rm -rf $scratch/\nls out\n"
_PART = "rm -rf $scratch/: recursive rm: $scratch/ is known only at run time"


async def _asked(stage: Stage, command: str, words: str) -> tuple[str, list[str]]:
    """Why a command asks, and what the model is told of it once the person has said no."""
    calls = (call("c1", "bash", command=command),)
    runtime = stage.runtime([Reply(tool_calls=calls), Reply("ok")], mode="full")
    why, told = "", []
    async for event in runtime.submit("go"):
        if isinstance(event, ApprovalRequested):
            why = event.request.reason
            runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("no", words))
        elif isinstance(event, ToolFinished):
            told.append(event.message.text)
    return why, told


async def test_a_refused_script_names_its_part_to_the_model(stage: Stage):
    calls = (call("c1", "bash", command=_SCRIPT), call("c2", "bash", command="rm -rf $scratch/"))
    script = [Reply(tool_calls=calls), Reply("ok")]
    runtime = stage.runtime(script, mode="full", is_interactive=False)
    finished = of_kind(await collect(runtime.submit("go")), ToolFinished)
    script_told, alone_told = (each.message.text for each in finished)
    assert f"needs the user's approval ({_PART})" in script_told
    assert script_told.endswith("You can run its other parts without the ones named here.")
    assert "other parts" not in alone_told
    assert finished[0].message.tool_details.refusal == f"needs approval: {_PART}"
    assert not (stage.workspace / "out").exists()


@pytest.mark.parametrize("words", ["", "keep it"])
async def test_a_declined_script_names_its_part(stage: Stage, words: str):
    why, told = await _asked(stage, _SCRIPT, words)
    said = f" They say: {words}" if words else ""
    assert why == _PART
    assert told == [f"The user declined this call. Approval was needed because: {_PART}.{said}"]


async def test_a_declined_command_of_one_part_is_not_repeated(stage: Stage):
    assert (await _asked(stage, "rm -rf $x/", ""))[1] == ["The user declined this call."]


async def test_a_command_after_a_declined_edit_says_that_it_ran_without_it(stage: Stage):
    calls = (
        call("c1", "write", path="a.py", content="x = 1"),
        call("c2", "bash", command="echo 76 passed"),
    )
    runtime = stage.runtime([Reply(tool_calls=calls), Reply("ok")], mode="ask")
    told: list[str] = []
    async for event in runtime.submit("go"):
        if isinstance(event, ApprovalRequested):
            is_write = event.request.tool_name == "write"
            answer = ApprovalAnswer("no", "not there") if is_write else ApprovalAnswer("once")
            runtime.pending_approvals.answer(event.request.id, answer)
        elif isinstance(event, ToolFinished):
            told.append(event.message.text)
    without = "[Ran without what was declined before it in this reply: create a.py"
    assert told[1].startswith("76 passed\n[exit code 0]")
    assert without in told[1]


class SlowToolbox:
    """The usual tools behind a look ahead that takes until `go_on` is set."""

    def __init__(self) -> None:
        self._tools: Toolbox = default_toolbox()
        self.specs, self.short_specs = self._tools.specs, self._tools.short_specs
        self.check, self.translate_call = self._tools.check, self._tools.translate_call
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
    runtime.conversation.services.toolbox = toolbox
    services = ToolServices(
        pending=PendingApprovals(),
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


async def test_a_link_swapped_while_the_person_decides_stops_the_command(stage):
    (stage.workspace / "first").mkdir()
    (stage.workspace / "second").mkdir()
    link = stage.workspace / "link"
    link.symlink_to("first")
    runtime = stage.runtime([], mode="ask")
    gate, events = PendingApprovals(), list[AgentEvent]()

    def swap_and_approve(event: AgentEvent) -> None:
        events.append(event)
        if isinstance(event, ApprovalRequested):
            link.unlink()
            link.symlink_to("second")
            answer = ApprovalAnswer("once")
            asyncio.get_running_loop().call_soon(gate.answer, event.request.id, answer)

    services = ToolServices(
        pending=gate,
        compact=never_compacted,
        history=NoHistory,
    )
    runner = ToolRunner(runtime.conversation, services, swap_and_approve)
    await runner.run_all([call("c1", "bash", command="touch link/new")])
    finished = next(event for event in events if isinstance(event, ToolFinished))
    (told,) = finished.message.content
    assert isinstance(told, TextContent)
    assert "changed after" in told.text
    assert list((stage.workspace / "second").iterdir()) == []
    (decided,) = runtime.conversation.permissions.log.latest
    assert (decided.decision, decided.by, decided.what) == ("allow", "person", "touch link/new")


class MeetingToolbox:
    """The usual tools, of which the first of two calls ends only after the second one."""

    def __init__(self) -> None:
        self._tools: Toolbox = default_toolbox()
        self.specs, self.short_specs = self._tools.specs, self._tools.short_specs
        self.check, self.translate_call = self._tools.check, self._tools.translate_call
        self.begun: list[str] = []
        self._second_ended = asyncio.Event()

    def prepare(self, name: str, arguments: JsonObject, context: ToolContext) -> PreparedCall:
        prepared = self._tools.prepare(name, arguments, context)

        async def run() -> ToolOutput:
            self.begun.append(name)
            if len(self.begun) == 1:
                await self._second_ended.wait()
                return await prepared.run()
            output = await prepared.run()
            self._second_ended.set()
            return output

        return PreparedCall(prepared.intent, run)


async def test_calls_that_only_read_run_at_the_same_time_with_results_in_order(stage: Stage):
    (stage.workspace / "a.txt").write_text("one\n")
    calls = (
        call("c1", "bash", command="cat a.txt"),
        call("c2", "read", path="a.txt"),
        call("c3", "write", path="b.txt", content="two"),
        call("c4", "read", path="b.txt"),
    )
    runtime = stage.runtime([Reply(tool_calls=calls), Reply(text="done")])
    toolbox = MeetingToolbox()
    runtime.services.toolbox = toolbox
    results = of_kind(await collect(runtime.submit("hi")), ToolFinished)
    assert [result.call_id for result in results] == ["c1", "c2", "c3", "c4"]
    assert not [result for result in results if result.message.is_error]
    assert toolbox.begun == ["bash", "read", "write", "read"]
    assert "two" in results[3].message.text


async def test_a_write_may_need_the_read_before_it_in_the_same_reply(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    (stage.workspace / "a.py").write_text("one = 1\n")
    looked_at = threading.Event()
    read, why_unseen = read_tool.read_window, write_tool.why_unseen

    def read_late(*given: Any) -> Any:
        assert looked_at.wait(PATIENCE_S)
        return read(*given)

    def look(*given: Any) -> str:
        why = why_unseen(*given)
        looked_at.set()
        return why

    monkeypatch.setattr(read_tool, "read_window", read_late)
    monkeypatch.setattr(write_tool, "why_unseen", look)
    reply = Reply(
        tool_calls=(
            call("c1", "read", path="a.py"),
            call("c2", "write", path="a.py", content="one = 2\n"),
        )
    )
    runtime = stage.runtime([reply, Reply("ok")])
    finished = of_kind(await collect(runtime.submit("go")), ToolFinished)
    assert [each.message.is_error for each in finished] == [False, False]
    assert (stage.workspace / "a.py").read_text() == "one = 2\n"
