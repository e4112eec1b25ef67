"""Code of others in this process: it ends neither the program nor waits for its own end."""

import asyncio
import signal
import threading
from types import SimpleNamespace
from typing import cast

import pytest

from agent_tui.api.tools import tool
from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.registry import CalledCommand
from agent_tui.errors import AgentTuiError, ToolError
from agent_tui.outside_code import is_fault, run_in_thread
from agent_tui.tools.base import ToolContext
from tests.tools.conftest import context, emitted, workspace

__all__ = ["context", "emitted", "workspace"]

LEAVING = pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), ValueError("x")])


@LEAVING
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_that_would_end_the_program_only_fails(
    context: ToolContext, raised: BaseException, is_async: bool
):
    def leave() -> str:
        """Leave."""
        raise raised

    async def leave_later() -> str:
        """Leave."""
        raise raised

    made = tool(leave_later) if is_async else tool(leave)
    with pytest.raises(ToolError, match=f"failed: {type(raised).__name__}"):
        await made.offer().prepare({}, context).run()


async def test_the_model_gets_no_control_characters_of_an_exception(context: ToolContext):
    @tool
    def fail() -> str:
        """Fail."""
        raise ValueError("a\x1b[31m\u202eb\x07")

    with pytest.raises(ToolError, match=r"^fail failed: ValueError: ab$"):
        await fail.offer().prepare({}, context).run()


@LEAVING
async def test_a_command_that_would_end_the_program_only_fails(raised: BaseException):
    async def leave(_front: object, _argument: str) -> None:
        raise raised

    leave.__module__ = "weather_plugin"
    front = cast(Front, SimpleNamespace(is_working=False))
    called = CalledCommand(command()(leave), "")
    with pytest.raises(AgentTuiError, match=f"/leave failed: {type(raised).__name__}"):
        await called.run(front)


def test_ctrl_c_and_a_cancellation_are_no_faults_of_the_code(monkeypatch: pytest.MonkeyPatch):
    assert not is_fault(asyncio.CancelledError())
    assert not is_fault(GeneratorExit())
    monkeypatch.setattr(signal, "getsignal", lambda _number: signal.default_int_handler)
    assert not is_fault(KeyboardInterrupt())


async def test_the_loop_ends_while_a_thread_hangs():
    go_on, seen = threading.Event(), list[threading.Thread]()

    def hang() -> None:
        seen.append(threading.current_thread())
        go_on.wait()

    task = asyncio.create_task(run_in_thread(hang))
    while not seen:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen[0].daemon
    go_on.set()
