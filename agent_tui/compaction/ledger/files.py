"""Which files the actions of a conversation read and changed."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from agent_tui.compaction.sections.history import Done
from agent_tui.sessions.shell_files import files_deleted_in_patch, files_in_patch, shell_changes

MAX_FILES = 5_000
"""Limit of the paths carried over; the list for the model is limited by characters."""

_OPEN_FILE = re.compile(r"^\[File: (\S[^\n]*?) \(\d+ lines total\)\]", re.MULTILINE)
"""The line by which an editor that keeps one file open names the file it changed."""

_SAYS_FAILED = re.compile(
    r"\s*(?:<tool_use_error>|error\b|traceback \(|no replacement was performed|invalid `"
    r"|your (?:proposed )?edit (?:command )?(?:has introduced|was not|failed|could not)"
    r"|(?:file|text|path|string) (?:to \w+ )?(?:does not exist|not found))",
    re.IGNORECASE,
)
"""First words of a refusal, as written by programs that do not mark failed results."""


@dataclass(frozen=True, slots=True)
class FileOperations:
    """Normalized paths, newest first. No path is in both."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


def normalise_path(path: str, folders: Sequence[str]) -> str:
    """`path` relative to the working folder when inside it, else absolute; ``""`` if neither.

    ``~`` stays as it is if the working folder is not in the home folder.

    Args:
        path: As a tool reported it or the model wrote it (``@src/a.py``, ``~/b``, ``./c``).
        folders: Absolute paths of the working folder; the first one resolves relative paths.
    """
    text = path.strip().removeprefix("@")
    if not text or "\n" in text or "\0" in text:
        return ""
    if text.startswith("~/"):
        home = Path.home()
        if not any(Path(folder).is_relative_to(home) for folder in folders):
            return os.path.normpath(text)  # perhaps the home folder of another user or machine
        text = str(home / text[2:])
    return _relative_to_first(text, tuple(folders))


@lru_cache(maxsize=8_192)
def _relative_to_first(path: str, folders: tuple[str, ...]) -> str:
    whole = os.path.normpath(Path(folders[0]) / path)
    for folder in map(os.path.normpath, folders):
        if whole == folder:
            return ""
        inside = folder.rstrip(os.sep) + os.sep
        if whole.startswith(inside):
            return whole.removeprefix(inside)
    return whole


class Touched(NamedTuple):
    """The files that one action read, changed and removed, as the action names them."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def files_of(event: Done) -> Touched:
    """The files that `event` touched: as the tool reported, else by its name and arguments.

    A failed action touched nothing, except that a command may fail after it changed a file. For
    commands, git reports the changes; ignored files and files read are found in the command's text.
    """
    output, action = event.output, event.output.action
    if output.has_failed:
        return Touched(modified=event.changed if action.command else ())
    if action.command:
        changes = shell_changes(action.command)
        read, written, edited = (
            changes.touches.read,
            changes.touches.written,
            changes.touches.edited,
        )
        return Touched(read, (*written, *edited, *event.changed), changes.removed)
    if output.files is not None:
        return Touched(output.files.read, event.changed)
    if _SAYS_FAILED.match(output.text):
        return Touched()
    listed = action.arguments.get("paths")
    paths = [action.path] if action.path else listed if isinstance(listed, list) else ()
    named = tuple(path for path in paths if isinstance(path, str))
    match action.kind:
        case "read":
            return Touched(read=named)
        case "edit":
            text = "\n".join(v for v in action.arguments.values() if isinstance(v, str))
            named = files_in_patch(text) or named or tuple(_OPEN_FILE.findall(output.text)[-1:])
            return Touched(modified=(*named, *event.changed), removed=files_deleted_in_patch(text))
        case "write":
            return Touched(modified=(*named, *event.changed))
        case _:
            return Touched(modified=event.changed)


def follow_files(steps: Iterable[Touched], folders: Sequence[str]) -> FileOperations:
    """The files after all `steps` (oldest first); a file changed once counts as modified.

    Removing a folder removes everything in it. `folders` are as for `normalise_path`.
    """
    is_modified: dict[str, bool] = {}
    for step in steps:
        for paths, is_change in ((step.read, False), (step.modified, True)):
            for path in filter(None, (normalise_path(path, folders) for path in paths)):
                is_modified[path] = is_modified.pop(path, False) or is_change
        for gone in filter(None, (normalise_path(path, folders) for path in step.removed)):
            for path in [p for p in is_modified if p == gone or p.startswith(f"{gone}/")]:
                del is_modified[path]
    newest_first = [*reversed(is_modified.items())]
    read = [path for path, is_change in newest_first if not is_change]
    modified = [path for path, is_change in newest_first if is_change]
    return FileOperations(tuple(read[:MAX_FILES]), tuple(modified[:MAX_FILES]))


def cap_lists(files: FileOperations, max_chars: int) -> tuple[list[str], list[str]]:
    """Lines for the model: read files and modified files, each sorted, `max_chars` in total.

    Read files are left out first, the oldest first; a last line "+N more" counts the files not
    listed.
    """
    modified, room = _that_fit(files.modified, max_chars)
    read, _ = _that_fit(files.read, room)
    return _list_lines(read, len(files.read)), _list_lines(modified, len(files.modified))


def _that_fit(newest_first: Sequence[str], room: int) -> tuple[list[str], int]:
    taken: list[str] = []
    for path in newest_first:
        if len(path) + 1 <= room:
            taken.append(path)
            room -= len(path) + 1
    return taken, room


def _list_lines(paths: list[str], count: int) -> list[str]:
    more = count - len(paths)
    return [*sorted(paths), *([f"+{more} more"] if more else [])]
