"""Sessions that were read, and how a tool asks for those of a file."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_tui.sessions.entries import CompactionEntry, Entry, Header
from agent_tui.sessions.replay.file_changes import FileVersion


@dataclass(frozen=True, slots=True)
class KnownSession:
    """One session of a chain, as it was when read; a session in memory has no `path`."""

    header: Header
    path: Path | None
    entries: tuple[Entry, ...]

    @property
    def id(self) -> str:
        """The session's id."""
        return self.header.id

    @property
    def parent(self) -> str:
        """The path or id of the session that it continues; empty if it names none."""
        return self.header.parent_session or ""

    @property
    def cwd(self) -> str:
        """The folder it works in; empty if the file does not say."""
        return self.header.cwd

    @property
    def begins_compacted(self) -> bool:
        """Whether it continues a session that was compacted."""
        return bool(self.parent) and isinstance(next(iter(self.entries), None), CompactionEntry)


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


class SessionFinder(Protocol):
    """Finds the sessions that may have changed a file; `FileSessions` implements it. Blocking."""

    def naming(self, names: Collection[str], path: Path) -> FoundSessions:
        """The sessions of the project of `path` that have one of `names` anywhere in their text."""
        ...

    def recorded_versions(self, path: Path) -> dict[str, list[RecordedVersion]]:
        """What every file of the project of `path` was after its recorded changes, by path."""
        ...

    def folders_of_contents(self, path: Path) -> list[Path]:
        """The folders with the contents that the sessions of the project of `path` kept."""
        ...


class NoSessions:
    """A `SessionFinder` that finds none."""

    def naming(self, names: Collection[str], path: Path) -> FoundSessions:
        """No sessions."""
        return FoundSessions()

    def recorded_versions(self, path: Path) -> dict[str, list[RecordedVersion]]:
        """No versions."""
        return {}

    def folders_of_contents(self, path: Path) -> list[Path]:
        """No folders."""
        return []
