"""The sessions that may have changed a file, of all that are stored."""

import json
import mmap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import follow_links, git_entry
from agent_tui.sessions.file.kept_files import KeptFiles, kept_folder
from agent_tui.sessions.lineage.chain import KnownSession, read_session_at
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.line_history.changes import (
    RecordedChange,
    changes_of_file,
    in_order_of_time,
)


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The recorded changes of one file, in order of time.

    Attributes:
        changes: The changes.
        sessions: The sessions that were read.
        unread: Files of sessions that name the file but cannot be read.
    """

    changes: Sequence[RecordedChange]
    sessions: Sequence[KnownSession]
    unread: tuple[Path, ...]

    def content(self, digest: str) -> bytes | None:
        """The content with this digest, kept by any of the sessions; None if there is none."""
        return KeptFiles(None, self._kept_folders).content(digest)

    def _kept_folders(self) -> Iterable[Path]:
        return (kept_folder(known.path) for known in self.sessions if known.path is not None)


def read_file_history(
    store: SessionStore, path: Path, own: KnownSession | None = None
) -> FileHistory:
    """Collect the changes of the file at `path` from all sessions of its project. Reads files.

    These are the sessions that work in a folder above the file or in its repository. Only those
    that name the file are read completely.

    Args:
        store: The sessions.
        path: The file, absolute, links followed.
        own: The present conversation, whose entries are known.
    """
    files = [file for file in _files_of_project(store, path) if own is None or file != own.path]
    read: dict[Path, KnownSession | None] = {}
    names: set[str] = set()
    wanted = {path.name}
    changes: list[RecordedChange] = []
    while wanted - names:
        names |= wanted
        mentions = _mentions(names)
        read |= {f: read_session_at(f, store) for f in files if f not in read and mentions(f)}
        known = [session for session in read.values() if session is not None]
        changes = in_order_of_time([*known, *([own] if own is not None else [])])
        changes = changes_of_file(changes, str(path))
        wanted = {Path(change.moved_from).name for change in changes if change.moved_from}
    sessions = [session for session in (*read.values(), own) if session is not None]
    unread = tuple(file for file, session in read.items() if session is None)
    return FileHistory(changes, sessions, unread)


def _files_of_project(store: SessionStore, path: Path) -> list[Path]:
    entry = git_entry(path.parent)
    root = entry.parent if entry is not None else path.parent
    found: list[Path] = []
    for summary in store.list():
        cwd = Path(follow_links(str(summary.cwd))) if summary.cwd.is_absolute() else None
        if cwd is not None and (path.is_relative_to(cwd) or cwd.is_relative_to(root)):
            found.append(summary.path)
    return found


def _mentions(names: Iterable[str]) -> Callable[[Path], bool]:
    """Whether a session file has one of `names`, in either way of writing JSON."""
    written = {
        json.dumps(name, ensure_ascii=is_ascii)[1:-1].encode("utf-8", "surrogatepass")
        for name in names
        for is_ascii in (True, False)
    }

    def mentions(file: Path) -> bool:
        try:
            with (
                open_regular_file(file) as opened,
                mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
            ):
                return any(content.find(name) >= 0 for name in written)
        except (OSError, ValueError):  # an empty file cannot be mapped
            return False

    return mentions
