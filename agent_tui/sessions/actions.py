"""What a tool call does and what it put out, whatever program wrote the session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from agent_tui.messages import CallEnding, FileTouches, JsonObject
from agent_tui.tool_names import find_meant_tool

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
    return _OTHER_KINDS.get(plain) or _KINDS.get(find_meant_tool(plain, _KINDS), "other")


@dataclass(frozen=True, slots=True)
class Action:
    """One tool call, whatever the tool is called in the program that wrote the session.

    `path` is as the model wrote it; `command` is set if something was run.
    """

    tool: str
    kind: ActionKind
    path: str = ""
    command: str = ""
    arguments: JsonObject = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class Output:
    """The output of an action.

    `file_key` identifies the file, however its path was written; empty if no file was named.
    `files` are those that the tool says it touched; None if it does not say. `images` is the number
    of images in it. `said` is what the user said about the action, such as why it was refused.
    `ending` says whether the user refused or interrupted it, `refusal` why the program refused it.
    `job` says that the outcome of a command is open: it still runs in the background, or it was
    stopped there.
    """

    action: Action
    text: str
    has_failed: bool
    exit_code: int | None = None
    summary: str = ""
    is_truncated: bool = False
    file_key: str = ""
    files: FileTouches | None = None
    images: int = 0
    said: tuple[str, ...] = ()
    ending: CallEnding = ""
    refusal: str = ""
    job: Literal["", "running", "stopped"] = ""

    @property
    def failure(self) -> str:
        """In a word, why the action did not succeed; empty if it did."""
        match self.ending:
            case "declined":
                return "refused"
            case "cancelled":
                return "interrupted"
            case _ if self.exit_code not in (None, 0):
                return f"exit {self.exit_code}"
            case _:
                return "failed" if self.has_failed else ""
