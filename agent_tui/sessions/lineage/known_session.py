"""A session that was read."""

from dataclasses import dataclass
from pathlib import Path

from agent_tui.sessions.entries import CompactionEntry, Entry, Header


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
