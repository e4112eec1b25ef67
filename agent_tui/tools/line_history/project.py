"""The recorded changes of a file, from all sessions that may have made them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.sessions.file.kept_files import KeptFiles, folder_of
from agent_tui.sessions.lineage.chain import KnownSession
from agent_tui.sessions.lineage.file_sessions import FileSessions, FoundSessions
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
        return (folder_of(known.path) for known in self.sessions if known.path is not None)


def read_file_history(sessions: FileSessions, path: Path) -> FileHistory:
    """Collect the changes of the file at `path` from all sessions that name it. Reads files.

    Args:
        sessions: Finds the sessions.
        path: The file, absolute, links followed.
    """
    names: set[str] = set()
    wanted = {path.name}
    found = FoundSessions()
    changes: list[RecordedChange] = []
    while wanted - names:
        names |= wanted
        found = sessions.naming(names, path)
        changes = changes_of_file(in_order_of_time(found.sessions), str(path))
        wanted = {Path(change.moved_from).name for change in changes if change.moved_from}
    return FileHistory(changes, found.sessions, found.unread)
