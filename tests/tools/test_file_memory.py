from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from tests.support.tool_calls import call_tool


async def _overwrites(context: ToolContext, name: str) -> bool:
    """Whether `write` takes the file for known."""
    try:
        await call_tool(context, "write", {"path": name, "content": "new\n"})
    except ToolError:
        return False
    return True


async def test_what_its_own_command_changed_in_a_file_it_read_is_known(
    context: ToolContext, workspace: Path
):
    (workspace / "a.py").write_text("x = 1\n")
    await call_tool(context, "read", {"path": "a.py"})
    await call_tool(context, "bash", {"command": "sed -i s/1/2/ a.py"})
    output = await call_tool(context, "edit", {"path": "a.py", "old": "x  = 2", "new": "x = 3"})
    assert "changed since" not in output.for_model
    assert (workspace / "a.py").read_text() == "x = 3\n"


async def test_what_another_changed_before_the_command_stays_unknown(
    context: ToolContext, workspace: Path
):
    (workspace / "a.py").write_text("x = 1\n")
    await call_tool(context, "read", {"path": "a.py"})
    (workspace / "a.py").write_text("precious = 1\n")
    await call_tool(context, "bash", {"command": "sed -i s/1/2/ a.py"})
    assert not await _overwrites(context, "a.py")


async def test_what_the_person_has_a_command_change_stays_unknown(
    context: ToolContext, workspace: Path
):
    (workspace / "a.py").write_text("x = 1\n")
    await call_tool(context, "read", {"path": "a.py"})
    context.is_persons = True
    await call_tool(context, "bash", {"command": "sed -i s/1/2/ a.py"})
    assert not await _overwrites(context, "a.py")


async def test_a_file_that_was_removed_and_made_again_by_another_stays_unknown(
    context: ToolContext, workspace: Path
):
    (workspace / "a.py").write_text("x = 1\n")
    await call_tool(context, "read", {"path": "a.py"})
    await call_tool(context, "bash", {"command": "rm a.py"})
    (workspace / "a.py").write_text("precious = 1\n")
    assert not await _overwrites(context, "a.py")


@pytest.mark.parametrize(
    "command",
    [
        "cat a/b.py",
        "cat -n a/b.py",
        "cd a && cat 'b.py'",
        "echo before; head -99 a/b.py; echo after",
        "grep -n '' a/b.py",
    ],
)
async def test_what_its_own_command_printed_whole_is_known(
    context: ToolContext, workspace: Path, command: str
):
    (workspace / "a").mkdir()
    (workspace / "a/b.py").write_bytes(b"x = 1\r\n\r\ny = 2\r\n")
    await call_tool(context, "bash", {"command": command})
    assert await _overwrites(context, "a/b.py")


@pytest.mark.parametrize("command", ["head -1 a.py", "wc a.py", "cat a.py | tr x y", "cat b.py"])
async def test_what_it_printed_in_part_or_not_at_all_is_not_known(
    context: ToolContext, workspace: Path, command: str
):
    (workspace / "a.py").write_text("x = 1\ny = 2\n")
    await call_tool(context, "bash", {"command": command})
    assert not await _overwrites(context, "a.py")


async def test_an_empty_file_is_not_known_by_any_output(context: ToolContext, workspace: Path):
    (workspace / "a.py").write_text("\n\n")
    await call_tool(context, "bash", {"command": "cat a.py"})
    assert not await _overwrites(context, "a.py")


async def test_words_that_no_file_can_be_named_do_no_harm(context: ToolContext):
    output = await call_tool(context, "bash", {"command": f"echo {'x' * 5_000} ~nobody/y /proc/1"})
    assert not output.is_error
