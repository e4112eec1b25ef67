"""The edits of recorded sessions, as they were made and as a model might have written them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from agent_tui.errors import ToolError
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.tools.base import ToolContext
from tests.support.recorded_edits import recorded_edits
from tests.support.tool_calls import call_tool
from tests.support.trajectories import trajectories

pytestmark = pytest.mark.skipif(not trajectories(), reason="no recorded sessions here")


Slip: TypeAlias = Callable[[str, str], tuple[str, str]]
"""A way to copy a text wrongly: what becomes of `old` and `new`."""


def _blanks_at_line_ends(text: str) -> str:
    return re.sub(r"(?<=\S)$", "  ", text, flags=re.MULTILINE)


def _curly(text: str) -> str:
    return re.sub(r"'(\w*)'", r"‘\1’", re.sub(r'"([^"\n]*)"', r"“\1”", text))


def _numbered(text: str) -> str:
    lines = text.removesuffix("\n").split("\n")
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, start=117))
    return numbered + "\n" * text.endswith("\n")


def _written_out(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _with_tabs(text: str) -> str:
    return re.sub("^(?:  )+", lambda found: "\t" * (len(found[0]) // 2), text, flags=re.M)


def _moved_left(old: str, new: str) -> tuple[str, str]:
    """Both without the indentation that all of their lines share."""
    if "\n" not in old:
        return old, new
    indents = [len(line) - len(line.lstrip()) for line in f"{old}\n{new}".split("\n") if line]
    shared = f"^ {{{min(indents)}}}"
    return re.sub(shared, "", old, flags=re.M), re.sub(shared, "", new, flags=re.M)


def _moved_right(text: str) -> str:
    return re.sub(r"^(?=[^\n])", "    ", text, flags=re.M)


def _both(slip: Callable[[str], str]) -> Slip:
    return lambda old, new: (slip(old), slip(new))


def _old(slip: Callable[[str], str]) -> Slip:
    return lambda old, new: (slip(old), new)


SLIPS: dict[str, Slip] = {
    "none": lambda old, new: (old, new),
    "spaces at line ends": _old(_blanks_at_line_ends),
    "typographic quotes": _old(_curly),
    "typographic quotes in both": _both(_curly),
    "dashes": _old(lambda text: text.replace("-", "–")),
    "line numbers": _old(_numbered),
    "line numbers in both": _both(_numbered),
    "written out": _old(_written_out),
    "written out in both": _both(_written_out),
    "tabs": _old(_with_tabs),
    "tabs in both": _both(_with_tabs),
    "moved left": lambda old, new: (_moved_left(old, new)[0], new),
    "moved left in both": _moved_left,
    "moved right in both": _both(_moved_right),
    "spaces within lines": _old(lambda text: re.sub("(?<=[^ \n]) ", "  ", text)),
}


def _param(slip: str) -> object:
    """A slip; what takes long, or differs from another by the second text alone, is thorough."""
    is_more = slip.endswith(" in both") or slip == "spaces within lines"
    return pytest.param(slip, marks=[pytest.mark.thorough] if is_more else [])


@pytest.mark.parametrize("slip", map(_param, SLIPS))
async def test_every_recorded_edit_is_made_as_it_was(
    context: ToolContext, workspace: Path, slip: str
):
    path = workspace / "file"
    made = 0
    for edit in recorded_edits():
        old, new = SLIPS[slip](edit.old, edit.new)
        if slip != "none" and (edit.all or old == edit.old):
            continue
        path.write_bytes(edit.before.encode())
        context.files.seen[path] = digest_of(edit.before.encode())
        await call_tool(context, "edit", {"path": "file", "old": old, "new": new, "all": edit.all})
        assert path.read_bytes() == edit.after.encode(), edit
        made += 1
    assert made > 50


@pytest.mark.thorough
async def test_no_recorded_edit_is_made_where_its_text_is_twice(
    context: ToolContext, workspace: Path
):
    path = workspace / "file"
    for name, slip in SLIPS.items():
        for edit in recorded_edits()[::7]:
            old, new = slip(edit.old, edit.new)
            twice = f"{edit.before}\n{edit.before}".encode()
            path.write_bytes(twice)
            context.files.seen[path] = digest_of(twice)
            with pytest.raises(ToolError, match="2 times"):
                await call_tool(context, "edit", {"path": "file", "old": old, "new": new})
            assert path.read_bytes() == twice, name
