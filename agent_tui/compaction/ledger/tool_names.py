"""What the tools of coding agents do, whatever they are called."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from agent_tui.tool_names import meant_tool

ActionKind: TypeAlias = Literal["read", "write", "edit", "run", "other"]

PATH_ARGUMENTS: Final = ("path", "file_path", "filePath", "filename", "file", "notebook_path")
"""The arguments that name the file, the likeliest first."""

_KINDS: Final[Mapping[str, ActionKind]] = {
    "read": "read",
    "write": "write",
    "edit": "edit",
    "apply_patch": "edit",
    "bash": "run",
}
_OTHER_KINDS: Final[Mapping[str, ActionKind]] = {
    "open": "read",
    "read_many_files": "read",
    "insert": "edit",
    "notebookedit": "edit",
    "notebook_edit": "edit",
    "execute_ipython_cell": "run",
    "run_ipython": "run",
}
"""Tools that do the like, but could not stand for ours."""


def tool_kind(name: str) -> ActionKind:
    """What the tool called `name` does; ``other`` where its name says nothing."""
    plain = name.lower()
    return _OTHER_KINDS.get(plain) or _KINDS.get(meant_tool(plain, _KINDS), "other")
