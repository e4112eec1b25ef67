"""Which files the successful calls of a conversation read and changed."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.compaction.ledger.shell_files import (
    deleted_files,
    patched_files,
    shell_changes,
    shell_files,
)
from agent_tui.compaction.ledger.tool_names import tool_kind
from agent_tui.compaction.tiers.outputs import action_of
from agent_tui.messages import BashExecutionMessage, FileTouches, ToolCall, ToolResultMessage

MAX_FILES = 5_000
"""A bound on what is carried; what the model is shown is capped in characters."""

_OPEN_FILE = re.compile(r"^\[File: (\S[^\n]*?) \(\d+ lines total\)\]", re.MULTILINE)
"""How an editor that keeps one file open says which one it changed."""

_SAYS_FAILED = re.compile(
    r"\s*(?:<tool_use_error>|error\b|traceback \(|no replacement was performed|invalid `"
    r"|your (?:proposed )?edit (?:command )?(?:has introduced|was not|failed|could not)"
    r"|(?:file|text|path|string) (?:to \w+ )?(?:does not exist|not found))",
    re.IGNORECASE,
)
"""The first words of a refusal, from programs that do not mark failed results."""


@dataclass(frozen=True, slots=True)
class FileOperations:
    """Paths in one form, newest first. No path is in both."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


def normalise_path(path: str, folders: Sequence[str]) -> str:
    """`path` relative to the working folder when inside it, else absolute; ``""`` if neither.

    Args:
        path: As a tool reported it or the model wrote it (``@src/a.py``, ``~/b``, ``./c``).
        folders: Names of the working folder, absolute; the first one resolves relative paths.
    """
    text = path.strip().removeprefix("@")
    if not text or "\n" in text or "\0" in text:
        return ""
    given = Path(text).expanduser() if text.startswith("~/") else Path(text)
    whole = os.path.normpath(Path(folders[0]) / given)
    for folder in folders:
        root = os.path.normpath(folder)
        if whole == root:
            return ""
        if whole.startswith(root.rstrip(os.sep) + os.sep):
            return os.path.relpath(whole, root)
    return whole


def touched_files(result: ToolResultMessage, call: ToolCall | None) -> FileTouches:
    """The files a call touched: what the tool said, else what its name and arguments tell.

    A failed call touched nothing; a failed command what it was seen to change, as it may have
    failed after that. What a tool for commands reports is what git saw; files that git ignores
    and those that were read are told by the command.
    """
    is_shell = tool_kind(result.tool_name) == "run"
    reported = result.tool_details.files
    if result.is_error:
        return reported if is_shell else FileTouches()
    if isinstance(result.details, dict) and "files" in result.details:
        return _both(told_files(call), reported) if is_shell else reported
    if not is_shell and _SAYS_FAILED.match(result.text):
        return FileTouches()
    told = told_files(call)
    if told == FileTouches() and tool_kind(result.tool_name) == "edit":
        return FileTouches(edited=tuple(_OPEN_FILE.findall(result.text)[-1:]))
    return told


def touched_by_person(message: BashExecutionMessage) -> FileTouches:
    """The files a command of the person's touched: as for a tool that runs commands."""
    reported = message.files or FileTouches()
    return _both(shell_files(message.command), reported) if message.exit_code == 0 else reported


def _both(told: FileTouches, reported: FileTouches) -> FileTouches:
    return FileTouches(
        read=(*told.read, *reported.read),
        written=(*told.written, *reported.written),
        edited=(*told.edited, *reported.edited),
    )


def told_files(call: ToolCall | None) -> FileTouches:
    """The files a call is about if it succeeds, told from its name and arguments."""
    if call is None:
        return FileTouches()
    action = action_of(call)
    paths = (action.path,) if action.path else _listed_paths(call)
    match action.kind:
        case "run":
            return shell_files(action.command)
        case "read":
            return FileTouches(read=paths)
        case "write":
            return FileTouches(written=paths)
        case "edit":
            return FileTouches(edited=patched_files("\n".join(_texts(call))) or paths)
        case "other":
            return FileTouches()


def removed_files(result: ToolResultMessage, call: ToolCall | None) -> tuple[str, ...]:
    """The files and folders that are gone after a call that went well."""
    if call is None or result.is_error:
        return ()
    action = action_of(call)
    if action.kind == "run":
        return shell_changes(action.command).removed
    return deleted_files("\n".join(_texts(call))) if action.kind == "edit" else ()


def _texts(call: ToolCall) -> list[str]:
    return [value for value in call.arguments.values() if isinstance(value, str)]


def _listed_paths(call: ToolCall) -> tuple[str, ...]:
    paths = call.arguments.get("paths")
    return tuple(p for p in paths if isinstance(p, str)) if isinstance(paths, list) else ()


class FileTracker:
    """Collects file operations in the order they happened."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = tuple(folders)
        self._is_modified: dict[str, bool] = {}

    def add(self, touches: FileTouches) -> None:
        """What was touched, oldest first; what was changed once counts as changed."""
        self._put(touches.read, is_modified=False)
        self._put((*touches.written, *touches.edited), is_modified=True)

    def remove(self, paths: Iterable[str]) -> None:
        """Files that are gone, and those in folders that are."""
        for path in paths:
            if gone := normalise_path(path, self._folders):
                known = self._is_modified
                for name in [n for n in known if n == gone or n.startswith(f"{gone}/")]:
                    del known[name]

    @property
    def operations(self) -> FileOperations:
        """What was collected, what was touched last first."""
        newest_first = [*reversed(self._is_modified.items())]
        read = [path for path, is_modified in newest_first if not is_modified]
        modified = [path for path, is_modified in newest_first if is_modified]
        return FileOperations(tuple(read[:MAX_FILES]), tuple(modified[:MAX_FILES]))

    def _put(self, paths: Iterable[str], *, is_modified: bool) -> None:
        for path in paths:
            if normal := normalise_path(path, self._folders):
                was_modified = self._is_modified.pop(normal, False)
                self._is_modified[normal] = was_modified or is_modified


def capped_lists(files: FileOperations, max_chars: int) -> tuple[list[str], list[str]]:
    """Lines for the model: read files and modified files, each sorted, in `max_chars` in all.

    Read files are left out first, the oldest first; a last line "+N more" counts what is not
    listed.
    """
    modified, room = _that_fit(files.modified, max_chars)
    read, _ = _that_fit(files.read, room)
    return _listed(read, len(files.read)), _listed(modified, len(files.modified))


def _that_fit(newest_first: Sequence[str], room: int) -> tuple[list[str], int]:
    taken: list[str] = []
    for path in newest_first:
        if len(path) + 1 <= room:
            taken.append(path)
            room -= len(path) + 1
    return taken, room


def _listed(paths: list[str], count: int) -> list[str]:
    more = count - len(paths)
    return [*sorted(paths), *([f"+{more} more"] if more else [])]
