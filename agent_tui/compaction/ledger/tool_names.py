"""The kinds of coding agents' tools, whatever their names."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from agent_tui.tool_names import meant_tool

ActionKind: TypeAlias = Literal["read", "write", "edit", "run", "other"]

PATH_ARGUMENTS: Final = ("path", "file_path", "filePath", "filename", "file", "notebook_path")
"""Names of arguments that hold the file's path, the most likely first."""

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
"""Tools of similar kinds that could not replace ours."""


def tool_kind(name: str) -> ActionKind:
    """The kind of the tool called `name`; ``other`` if its name is unknown."""
    plain = name.lower()
    return _OTHER_KINDS.get(plain) or _KINDS.get(meant_tool(plain, _KINDS), "other")
