from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.omissions import omission_mark
from agent_tui.tools.base import ToolContext, ToolOutput
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.selection import select_tools
from tests.support.rows import each_row
from tests.support.tool_calls import call_tool, intent_of

_SOURCE = """class A:
    def f(self):
        return 1


class B:
    def f(self):
        return 1
"""


@pytest.fixture
async def source(context: ToolContext, workspace: Path) -> Path:
    (workspace / "a.py").write_text(_SOURCE)
    await call_tool(context, "read", {"path": "a.py"})
    return workspace / "a.py"


def _patch(*lines: str) -> dict[str, str]:
    return {"patch": "\n".join(["*** Begin Patch", *lines, "*** End Patch"])}


async def _apply(context: ToolContext, *lines: str) -> ToolOutput:
    return await call_tool(context, "apply_patch", {**_patch(*lines)})


async def test_files_are_added_updated_moved_and_deleted_at_once(
    context: ToolContext, workspace: Path, source: Path
):
    for name in ("old.py", "gone.py"):
        (workspace / name).write_text("x = 1\n")
        await call_tool(context, "read", {"path": name})
    output = await _apply(
        context,
        "*** Add File: new/b.py",
        "+def g():",
        "+    pass",
        "*** Update File: a.py",
        "@@ class B:",
        "     def f(self):",
        "-        return 1",
        "+        return 2",
        "*** Update File: old.py",
        "*** Move to: moved.py",
        "@@",
        "-x = 1",
        "+x = 2",
        "*** Delete File: gone.py",
    )
    assert (workspace / "new/b.py").read_text() == "def g():\n    pass\n"
    assert source.read_text() == "return 2".join(_SOURCE.rsplit("return 1", 1))
    assert (workspace / "moved.py").read_text() == "x = 2\n"
    assert not (workspace / "old.py").exists()
    assert not (workspace / "gone.py").exists()
    assert output.for_person.summary == "+4 -3"
    files = output.for_person.files
    assert {Path(name).name for name in files.written} == {"b.py", "moved.py"}
    assert {Path(name).name for name in files.edited} == {"a.py", "old.py", "gone.py"}
    assert "added new/b.py (+2 -0)" in output.for_model
    assert "updated a.py (+1 -1, at 8)" in output.for_model


async def test_the_intent_names_all_files_and_shows_all_diffs_and_changes_nothing(
    context: ToolContext, workspace: Path, source: Path
):
    lines = ("*** Update File: a.py", "@@ class A:", " def f(self):")
    lines = (*lines[:2], "-        return 1", "+        return 3", "*** Add File: b", "+x")
    intent = intent_of(context, "apply_patch", {**_patch(*lines)})
    assert intent.access == "write"
    assert intent.paths == (source, workspace / "b")
    assert "-        return 1\n+        return 3" in intent.body
    assert "+++ b\n" in intent.body
    other = intent_of(context, "apply_patch", {**_patch(*lines[:-1], "+y")})
    assert other.fingerprint != intent.fingerprint
    assert source.read_text() == _SOURCE


async def test_one_hunk_without_a_place_leaves_every_file_alone(
    context: ToolContext, workspace: Path, source: Path
):
    with pytest.raises(ToolError, match=r"hunk 2 of a\.py is not in the file"):
        await _apply(
            context,
            *("*** Add File: b", "+x"),
            *("*** Update File: a.py", "@@ class A:", "-        return 1", "+        return 2"),
            *("@@", "-        return 7", "+        return 8"),
        )
    assert source.read_text() == _SOURCE
    assert not (workspace / "b").exists()


async def test_a_hunk_that_fits_two_places_is_refused_unless_a_header_leads_to_one(
    context: ToolContext, source: Path
):
    hunk = ("-        return 1", "+        return 2")
    with pytest.raises(ToolError, match="matches 2 places, at lines 3, 8"):
        await _apply(context, "*** Update File: a.py", "@@", *hunk)
    await _apply(context, "*** Update File: a.py", "@@ class B:", "@@     def f(self):", *hunk)
    assert source.read_text() == "return 2".join(_SOURCE.rsplit("return 1", 1))


@each_row(
    ("before", "lines", "after"),
    [
        ("a\nb\n", ["@@", "+c"], "a\nb\nc\n"),
        ("a\nb", ["@@", "+c"], "a\nb\nc\n"),
        ("a\nb\n", ["@@ a", "+c"], "a\nc\nb\n"),
        ("a\nb", ["@@", " a", "-b", "+c"], "a\nc"),
        ("x\na\nx\n", ["@@", "-x", "+y", "*** End of File"], "x\na\ny\n"),
        ("a\r\nb\r\n", ["@@", "-b", "+c"], "a\r\nc\r\n"),
        ("a\n\nb\n", [" a", "", "-b", "+c"], "a\n\nc\n"),
        ("if x:\n\tf()\n", ["@@", " if x:", "-    f()", "+    g()"], "if x:\n\tg()\n"),
        ("a = “b”\n", ["@@", '-a = "b"', '+a = "c"'], "a = “c”\n"),
        ("xa\na\n", ["@@", "-a", "+b"], "xa\nb\n"),
        ("a\n", ["@@ -1,1 +1,1 @@", "-a", "+b"], "b\n"),
        ("a\nb\nc\n", ["@@", "-a", "+x", "@@", "-c", "+z"], "x\nb\nz\n"),
    ],
)  # fmt: skip
async def test_where_hunks_belong(
    context: ToolContext, workspace: Path, before: str, lines: list[str], after: str
):
    path = workspace / "f"
    path.write_bytes(before.encode())
    await call_tool(context, "read", {"path": "f"})
    await _apply(context, "*** Update File: f", *lines)
    assert path.read_bytes() == after.encode()


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "has no file"),
        (["x"], "Line 2 of the patch is not valid: 'x'"),
        (["*** Update File: a.py", "@@", "return"], "Line 4 of the patch"),
        (["*** Add File: b", "x"], "Line 3 of the patch"),
        (["*** Add File: a.py", "+x"], "a.py exists"),
        (["*** Update File: nowhere.py", "@@", "-x", "+y"], "There is no file nowhere.py"),
        (["*** Update File: a.py", "@@ class C:", "-x", "+y"], "'class C:' after @@ in the hunk"),
        (["*** Update File: a.py", "@@", " class A:"], "changes nothing"),
        (["*** Add File: b", f"+{omission_mark('9 tokens')}"], "placeholder for text left out"),
        (["*** Add File: b", "+x", "*** Add File: ./b", "+y"], "contains b twice"),
    ],
)
async def test_what_cannot_be_applied_is_refused_with_the_reason(
    context: ToolContext, workspace: Path, source: Path, lines: list[str], why: str
):
    with pytest.raises(ToolError) as caught:
        await _apply(context, *lines)
    assert why in str(caught.value)
    assert source.read_text() == _SOURCE
    assert not (workspace / "b").exists()


async def test_a_file_not_known_as_it_is_is_neither_deleted_nor_patched_by_guess(
    context: ToolContext, workspace: Path, source: Path
):
    source.write_text(_SOURCE + "y = 1\n")
    with pytest.raises(ToolError, match=r"changed since you read it\. Read it first"):
        await _apply(context, "*** Delete File: a.py")
    with pytest.raises(ToolError, match="does not match it exactly"):
        await _apply(context, "*** Update File: a.py", "@@", "-y  = 1", "+y = 2")
    output = await _apply(context, "*** Update File: a.py", "@@", "-y = 1", "+y = 2")
    assert "changed since you read it" in output.for_model


@pytest.mark.parametrize(
    "command",
    [
        "apply_patch <<'EOF'\n{}\nEOF",
        "cd /work && apply_patch <<EOF\n{}\nEOF\n",
        ["apply_patch", "{}"],
        ["bash", "-lc", "applypatch << 'PATCH'\n{}\nPATCH"],
    ],
)
def test_a_patch_handed_to_a_command_is_a_call_of_the_tool(command: str | list[str]):
    patch = _patch("*** Delete File: a.py")["patch"]
    given = (
        command.format(patch)
        if isinstance(command, str)
        else [word.format(patch) for word in command]
    )
    call = default_toolbox().translate_call("shell", {"command": [*given]}, Path("/work"))
    if isinstance(given, str):
        call = default_toolbox().translate_call("bash", {"command": given}, Path("/work"))
    assert (call.name, call.arguments) == ("apply_patch", {"patch": patch})


@pytest.mark.parametrize(
    "command",
    [
        "apply_patch <<'EOF'\nx\nEOF\nrm -rf b",
        "cd /elsewhere && apply_patch <<'EOF'\nx\nEOF",
        "echo apply_patch",
    ],
)
def test_a_command_that_does_more_stays_one(command: str):
    call = default_toolbox().translate_call("bash", {"command": command}, Path("/work"))
    assert (call.name, call.arguments) == ("bash", {"command": command})


@each_row(
    ("model_id", "editor"),
    [
        ("gpt-5.1-codex", "apply_patch"),
        ("openai/gpt-4.1-mini", "apply_patch"),
        ("gpt-oss-120b", "apply_patch"),
        ("o3", "apply_patch"),
        ("gpt-4o", "edit"),
        ("claude-sonnet-4-5", "edit"),
        ("qwen3-coder", "edit"),
        ("foo3", "edit"),
    ],
)
def test_a_model_is_offered_the_way_of_editing_it_was_trained_on(model_id: str, editor: str):
    names = {spec.name for spec in select_tools(default_toolbox().specs, model_id)}
    assert names & {"edit", "apply_patch"} == {editor}
    others = {spec.name for spec in default_toolbox().specs} - names - {"edit", "apply_patch"}
    assert others == {"plan", "skill"}  # of plan mode, of skills
