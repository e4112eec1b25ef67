"""Which files the successful calls of a conversation read and changed."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.messages import FileTouches, ToolCall, ToolResultMessage

MAX_FILES = 5_000
"""A bound on what is carried; what the model is shown is capped in characters."""

_READERS = frozenset({"read", "read_file", "view", "open_file", "cat"})
_WRITERS = frozenset({"write", "write_file", "create", "create_file"})
_EDITORS = frozenset(
    {"edit", "edit_file", "multiedit", "multi_edit", "str_replace", "str_replace_editor"}
)
_PATH_ARGUMENTS = ("path", "file_path", "filePath", "filename", "file")


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
    """The files a call touched: what the tool said, else what a foreign call's name tells.

    A failed call touched nothing.
    """
    if result.is_error:
        return FileTouches()
    if isinstance(result.details, dict) and "files" in result.details:
        return result.tool_details.files
    if call is None:
        return FileTouches()
    path = next(
        (value for key in _PATH_ARGUMENTS if isinstance(value := call.arguments.get(key), str)), ""
    )
    name = call.name.lower()
    if not path:
        return FileTouches()
    return FileTouches(
        read=(path,) if name in _READERS else (),
        written=(path,) if name in _WRITERS else (),
        edited=(path,) if name in _EDITORS else (),
    )


class FileTracker:
    """Collects file operations in the order they happened."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = tuple(folders)
        self._read: dict[str, None] = {}
        self._modified: dict[str, None] = {}

    def add(self, touches: FileTouches) -> None:
        """One successful call."""
        self.add_read(touches.read)
        self.add_modified((*touches.written, *touches.edited))

    def add_read(self, paths: Iterable[str]) -> None:
        """Files that were read, oldest first."""
        self._put(self._read, paths)

    def add_modified(self, paths: Iterable[str]) -> None:
        """Files that were written or edited, oldest first."""
        self._put(self._modified, paths)

    @property
    def operations(self) -> FileOperations:
        """What was collected; a file that was changed is not listed as read."""
        modified = tuple(reversed(self._modified))[:MAX_FILES]
        read = (path for path in reversed(self._read) if path not in self._modified)
        return FileOperations(tuple(read)[:MAX_FILES], modified)

    def _put(self, known: dict[str, None], paths: Iterable[str]) -> None:
        for path in paths:
            if normal := normalise_path(path, self._folders):
                known.pop(normal, None)
                known[normal] = None


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
