import stat
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.omissions import (
    cut_end_mark,
    cut_middle_mark,
    more_lines_mark,
    omission_mark,
    recall_mark,
)
from agent_tui.tools.base import ToolContext
from tests.support.rows import each_row
from tests.support.tool_calls import call_tool, intent_of


async def test_a_new_file_gets_its_folders(context: ToolContext, workspace: Path):
    output = await call_tool(context, "write", {"path": "a/b/c.txt", "content": "x\ny\n"})
    assert (workspace / "a/b/c.txt").read_text() == "x\ny\n"
    assert output.for_model == "Created a/b/c.txt (2 lines)."
    assert output.for_person.summary == "created, +2 -0"
    assert output.for_person.files.written == (str(workspace / "a/b/c.txt"),)


async def test_an_unread_file_is_not_overwritten(context: ToolContext, workspace: Path):
    (workspace / "a").write_text("precious")
    with pytest.raises(ToolError, match=r"you have not read it. Read it first"):
        await call_tool(context, "write", {"path": "a", "content": "x"})
    assert (workspace / "a").read_text() == "precious"


async def test_a_file_changed_since_it_was_read_is_not_overwritten(
    context: ToolContext, workspace: Path
):
    (workspace / "a").write_text("one")
    await call_tool(context, "read", {"path": "a"})
    (workspace / "a").write_text("two")
    with pytest.raises(ToolError, match="changed since you read it"):
        await call_tool(context, "write", {"path": "a", "content": "x"})
    assert (workspace / "a").read_text() == "two"


async def test_a_read_file_is_replaced_and_keeps_its_mode(context: ToolContext, workspace: Path):
    (workspace / "run.sh").write_text("one\n")
    (workspace / "run.sh").chmod(0o751)
    await call_tool(context, "read", {"path": "run.sh"})
    output = await call_tool(context, "write", {"path": "run.sh", "content": "two\n"})
    assert stat.S_IMODE((workspace / "run.sh").stat().st_mode) == 0o751
    assert output.for_person.diff is not None
    assert "-one\n+two" in output.for_person.diff
    await call_tool(context, "write", {"path": "run.sh", "content": "three\n"})
    assert [path.name for path in workspace.iterdir()] == ["run.sh"]


async def test_a_link_stays_a_link(context: ToolContext, workspace: Path):
    (workspace / "real").write_text("")
    (workspace / "link").symlink_to("real")
    await call_tool(context, "write", {"path": "link", "content": "x"})
    assert (workspace / "link").is_symlink()
    assert (workspace / "real").read_text() == "x"


async def test_a_path_through_a_file_is_refused(context: ToolContext, workspace: Path):
    (workspace / "file").write_text("x")
    with pytest.raises(ToolError, match="file is a file, so file/x cannot exist"):
        await call_tool(context, "write", {"path": "file/x", "content": ""})


async def test_a_lone_surrogate_is_refused(context: ToolContext, workspace: Path):
    with pytest.raises(ToolError, match="lone surrogate"):
        await call_tool(context, "write", {"path": "a", "content": "\ud800"})
    assert not (workspace / "a").exists()


def test_the_fingerprint_follows_target_and_both_contents(context: ToolContext, workspace: Path):
    first = intent_of(context, "write", {"path": "a", "content": "x"})
    assert first == intent_of(context, "write", {"path": "a", "content": "x"})
    assert (
        first.fingerprint != intent_of(context, "write", {"path": "a", "content": "y"}).fingerprint
    )
    assert (
        first.fingerprint != intent_of(context, "write", {"path": "b", "content": "x"}).fingerprint
    )
    (workspace / "a").write_text("")
    assert (
        first.fingerprint != intent_of(context, "write", {"path": "a", "content": "x"}).fingerprint
    )
    (workspace / "a").unlink()
    (workspace / "a").symlink_to("elsewhere")
    swapped = intent_of(context, "write", {"path": "a", "content": "x"})
    assert swapped.paths == (workspace / "elsewhere",)
    assert first.fingerprint != swapped.fingerprint


@each_row(
    "mark",
    [
        f"{omission_mark('187 tokens')} {recall_mark('0000001a')}",
        omission_mark("12 lines, 3400 bytes"),
        f"    (was read again later, in 0000001b) {recall_mark('0000001a')}",
        f"x = [1, 2, 3{cut_end_mark(500)}",
        f"x = [1, 2{cut_middle_mark(500)}8, 9]",
        more_lines_mark(1, 20, 90),
    ],
)
async def test_a_mark_for_text_left_out_is_not_written(
    context: ToolContext, workspace: Path, mark: str
):
    with pytest.raises(ToolError, match=r"placeholder for text left out.*Read the file, or recall"):
        await call_tool(context, "write", {"path": "a", "content": f"x\n{mark}\ny\n"})
    assert not (workspace / "a").exists()


async def test_a_mark_that_stood_in_the_file_or_is_quoted_is_written(
    context: ToolContext, workspace: Path
):
    mark = omission_mark("187 tokens")
    (workspace / "a.py").write_text(f"{mark}\n")
    await call_tool(context, "read", {"path": "a.py"})
    new = f'{mark}\nassert shown == "{mark}"\n# {mark} it says.\n'
    await call_tool(context, "write", {"path": "a.py", "content": new})
    assert (workspace / "a.py").read_text() == new
