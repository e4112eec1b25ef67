"""The sessions that may have changed a file: a conversation's own and others of the project."""

import json
import mmap
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import follow_links, git_entry
from agent_tui.sessions.lineage.chain import KnownSession, read_session_at
from agent_tui.sessions.store import SessionStore


@dataclass(frozen=True, slots=True)
class FoundSessions:
    """Sessions that name a file, and the files of those that cannot be read."""

    sessions: tuple[KnownSession, ...] = ()
    unread: tuple[Path, ...] = ()


class FileSessions:
    """Finds sessions by the names of files. Each file of a session is read once. Blocking.

    Args:
        store: All stored sessions; None to find none but `own`.
        own: The conversation's session, then those that it continues. The first one is used as it
            is; the file of any other is read again, as it may have been continued.
        reaches_others: Whether sessions that are not among `own` are read.
    """

    def __init__(
        self,
        store: SessionStore | None,
        own: Iterable[KnownSession] = (),
        *,
        reaches_others: bool = True,
    ) -> None:
        self._store = store
        self._own = own
        self._reaches_others = reaches_others
        self._read: dict[Path, KnownSession | None] = {}

    def naming(self, names: Collection[str], path: Path) -> FoundSessions:
        """The sessions of the project of `path` that have one of `names` anywhere in their text.

        Those are the conversation's own ones, and all that work in a folder above `path` or in its
        repository. Sessions in memory are always among them.

        Args:
            names: Names of files, without folders.
            path: The file, absolute, links followed.
        """
        own = self._own = list(self._own)
        kept = [known for at, known in enumerate(own) if at == 0 or known.path is None]
        there = {known.path for known in kept}
        files = [known.path for known in own if known.path not in there and known.path]
        if self._store is not None:
            others = _files_of_project(self._store, path) if self._reaches_others else []
            files += [file for file in others if file not in there and file not in files]
            mentions = _mentions(names)
            for file in files:
                if file not in self._read and mentions(file):
                    self._read[file] = read_session_at(file, self._store)
        read = [session for session in self._read.values() if session is not None]
        unread = tuple(file for file, session in self._read.items() if session is None)
        return FoundSessions((*read, *kept), unread)


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
