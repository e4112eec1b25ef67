"""The sessions that may have changed a file: a conversation's own and others of the project."""

import json
import mmap
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import follow_links, git_entry
from agent_tui.sessions.entries import Entry, Header, milliseconds
from agent_tui.sessions.file.kept_files import folder_of
from agent_tui.sessions.format.codec import UnreadableRecordError, decode_record
from agent_tui.sessions.lineage.chain import read_session_at
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.replay.file_changes import FILE_CHANGES, FileVersion, file_changes_in
from agent_tui.sessions.store import SessionStore
from agent_tui.text import encode_path


@dataclass(frozen=True, slots=True)
class FoundSessions:
    """Sessions that name a file, and the files of those that cannot be read."""

    sessions: tuple[KnownSession, ...] = ()
    unread: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedVersion:
    """What a file was after a recorded change; `made_ms` is in milliseconds since 1970."""

    made_ms: int
    version: FileVersion


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
        self._files: dict[Path, list[Path]] = {}

    def naming(self, names: Collection[str], path: Path) -> FoundSessions:
        """The sessions of the project of `path` that have one of `names` anywhere in their text.

        Those are the conversation's own ones, and all that work in a folder above `path` or in its
        repository. Sessions in memory are always among them.

        Args:
            names: Names of files, without folders.
            path: The file, absolute, links followed.
        """
        kept, files = self._sessions_of(path)
        if self._store is not None:
            mentions = _mentions(names)
            for file in files:
                if file not in self._read and mentions(file):
                    self._read[file] = read_session_at(file, self._store)
        read = [session for session in self._read.values() if session is not None]
        unread = tuple(file for file, session in self._read.items() if session is None)
        return FoundSessions((*read, *kept), unread)

    def recorded_versions(self, path: Path) -> dict[str, list[RecordedVersion]]:
        """What every file was after its recorded changes, in the project's sessions, by path.

        Only these records are read, not whole sessions.

        Args:
            path: A file of the project, absolute, links followed.
        """
        kept, files = self._sessions_of(path)
        versions: dict[str, list[RecordedVersion]] = {}
        entries = chain.from_iterable(session.entries for session in kept)
        for entry in chain(entries, chain.from_iterable(map(_recorded_changes, files))):
            recorded = file_changes_in(entry)
            for change in recorded.changes if recorded is not None else ():
                version = RecordedVersion(milliseconds(entry.timestamp), change.after)
                versions.setdefault(change.path, []).append(version)
        for of_file in versions.values():
            of_file.sort(key=lambda version: version.made_ms)
        return versions

    def folders_of_contents(self, path: Path) -> list[Path]:
        """The folders with the contents that the project's sessions kept. Args: see `naming`."""
        kept, files = self._sessions_of(path)
        return [folder_of(file) for file in (*(known.path for known in kept), *files) if file]

    def _sessions_of(self, path: Path) -> tuple[list[KnownSession], list[Path]]:
        """Those used as they are, and the files of all others of the project of `path`."""
        own = self._own = list(self._own)
        kept = [known for at, known in enumerate(own) if at == 0 or known.path is None]
        there = {known.path for known in kept}
        files = [known.path for known in own if known.path not in there and known.path]
        if self._store is not None and self._reaches_others:
            root = project_root(path)
            if root not in self._files:
                self._files[root] = _files_of_project(self._store, path, root)
            there.update(files)
            files += [file for file in self._files[root] if file not in there]
        return kept, files


def project_root(path: Path) -> Path:
    """The folder of the project of the file at `path`: its repository, or its own folder."""
    entry = git_entry(path.parent)
    return entry.parent if entry is not None else path.parent


def _files_of_project(store: SessionStore, path: Path, root: Path) -> list[Path]:
    found: list[Path] = []
    for summary in store.list():
        cwd = Path(follow_links(str(summary.cwd))) if summary.cwd.is_absolute() else None
        if cwd is not None and (path.is_relative_to(cwd) or cwd.is_relative_to(root)):
            found.append(summary.path)
    return found


def _recorded_changes(file: Path) -> Iterator[Entry]:
    """The entries of a session file that record changes of files, found by their kind."""
    marked = f'"{FILE_CHANGES}"'.encode()
    try:
        with (
            open_regular_file(file) as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            place = content.find(marked)
            while place >= 0:
                start, end = content.rfind(b"\n", 0, place) + 1, content.find(b"\n", place)
                end = end if end >= 0 else len(content)
                with suppress(UnreadableRecordError):
                    value = decode_record(content[start:end]).value
                    if not isinstance(value, Header):
                        yield value
                place = content.find(marked, end)
    except (OSError, ValueError):  # an empty file cannot be mapped
        return


def _mentions(names: Iterable[str]) -> Callable[[Path], bool]:
    """Whether a session file has one of `names`, in either way of writing JSON."""
    written = {
        json.dumps(encode_path(name), ensure_ascii=is_ascii)[1:-1].encode()
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
