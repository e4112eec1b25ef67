"""The recorded changes of a file, from all sessions that may have made them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.features.why.line_history.changes import (
    RecordedChange,
    changes_of_file,
    in_order_of_time,
)
from agent_tui.features.why.line_history.file_sessions import FileSessions
from agent_tui.sessions.file.kept_files import KeptFiles
from agent_tui.sessions.lineage.known_session import KnownSession

Proof: TypeAlias = Literal["git", "same", "similar"]
"""How it is known that a file was moved or copied: git says so, or its content is the same as the
recorded one, or at least half of it is."""


@dataclass(frozen=True, slots=True)
class UnrecordedMove:
    """A move or a copy of the file that no session recorded.

    Attributes:
        at: The index of the first change after it.
        before: The path before.
        after: The path afterwards.
        proof: How it is known.
        percent: How much of the content is the same.
        is_sure: Whether equal lines are certainly the lines of the file at `before`.
    """

    at: int
    before: str
    after: str
    proof: Proof
    percent: int = 100
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The recorded changes of one file, in order of time.

    Attributes:
        path: The file, absolute.
        changes: The changes.
        finder: Finds sessions.
        sessions: The sessions that were read.
        unread: Files of sessions that name the file but cannot be read.
        start: The path of the file before the first of `changes`.
        moves: The moves that no session recorded, in order of time.
        maybe: Files that it may have been before the first of `changes`.
    """

    path: Path
    changes: Sequence[RecordedChange]
    finder: FileSessions
    sessions: Sequence[KnownSession]
    unread: tuple[Path, ...]
    start: str
    moves: tuple[UnrecordedMove, ...] = ()
    maybe: tuple[str, ...] = ()

    def content(self, digest: str) -> bytes | None:
        """The content with this digest, kept by any session of the project; None for none."""
        return KeptFiles(None, self._kept_folders).content(digest)

    def _kept_folders(self) -> Iterable[Path]:
        return self.finder.folders_of_contents(self.path)

    def after(self, earlier: "FileHistory", move: UnrecordedMove | None = None) -> "FileHistory":
        """This history behind that of the file before `move`; the index in `move` is ignored.

        Without a `move`, the first change of this history is the one that moved the file.
        """
        count = len(earlier.changes)
        later = (replace(one, at=one.at + count) for one in self.moves)
        return replace(
            earlier,
            path=self.path,
            changes=(*earlier.changes, *self.changes),
            moves=(*((replace(move, at=count),) if move is not None else ()), *later),
        )


def read_file_history(
    sessions: FileSessions, path: Path, former: str = "", until_ms: int | None = None
) -> FileHistory:
    """Collect the changes of the file at `path` from all sessions that name it. Reads files.

    Args:
        sessions: Finds the sessions.
        path: The file, absolute, links followed.
        former: Another path whose changes to collect instead, of a file of the same project.
        until_ms: The last moment of these changes, in milliseconds since 1970; None for now.
    """
    end = former or str(path)
    names: set[str] = set()
    wanted = {Path(end).name}
    found = sessions.naming(wanted, path)
    changes: list[RecordedChange] = []
    while wanted - names:
        names |= wanted
        found = sessions.naming(names, path)
        made = in_order_of_time(found.sessions)
        made = [one for one in made if until_ms is None or one.made_ms <= until_ms]
        changes = changes_of_file(made, end)
        wanted = {Path(change.moved_from).name for change in changes if change.moved_from}
    start = changes[0].moved_from or changes[0].path if changes else end
    return FileHistory(path, changes, sessions, found.sessions, found.unread, start)
