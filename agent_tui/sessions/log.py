"""One session: an append-only file and its copy in memory."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from agent_tui.config import Durability
from agent_tui.errors import NewerFormatError, SessionError
from agent_tui.sessions.entries import (
    FORMAT_VERSION,
    CompactionEntry,
    CustomEntry,
    Entry,
    Header,
    SessionInfoEntry,
    leaf_of,
    new_entry_id,
)
from agent_tui.sessions.file.disk import DiskFile, OpenFile
from agent_tui.sessions.file.writer import (
    SessionInUseError,
    SessionLock,
    SessionState,
    SessionWriter,
)
from agent_tui.sessions.format.codec import encode_header, encode_repaired
from agent_tui.sessions.format.parse import ParsedSession, read_session
from agent_tui.sessions.replay.file_changes import complete_result

__all__ = ["SessionInUseError", "SessionLog"]

EntryT = TypeVar("EntryT", bound=Entry)

_CONTINUES_HERE = "continues_here"
"""Custom type of the entry after copied ones that were pulled: it makes them the path."""


class SessionLog:
    """Entries of one session, each written to the file before it is added in memory.

    Build it with `create`, `open` or, with its first entries written at once, `write`. A failed
    append leaves the entries in memory unchanged. Use a log in one thread only.
    """

    def __init__(
        self,
        path: Path | None,
        header: Header,
        writer: SessionWriter | None,
        parsed: ParsedSession | None = None,
        *,
        is_read_only: bool = False,
    ) -> None:
        entries = parsed.entries if parsed else ()
        self.path = path
        self.header = header
        self._writer = writer
        self._warnings = parsed.warnings if parsed else ()
        self._is_read_only = is_read_only
        self._is_closed = False
        self._by_id = {entry.id: entry for entry in entries}
        self._entries: tuple[Entry, ...] | None = entries
        leaf = leaf_of(entries)
        self._leaf_id = leaf.id if leaf is not None else None
        self._path_entries: tuple[Entry, ...] | None = None

    @classmethod
    def create(
        cls,
        path: Path | None,
        header: Header,
        durability: Durability = "entry",
        *,
        open_file: OpenFile = DiskFile,
    ) -> Self:
        """Create an empty session. The first append creates the file; None: memory only."""
        writer = SessionWriter(path, durability, open_file, lock=None) if path else None
        return cls(path, header, writer)

    @classmethod
    def open(
        cls,
        path: Path,
        durability: Durability = "entry",
        *,
        read_only: bool = False,
        open_file: OpenFile = DiskFile,
    ) -> Self:
        """Read a session of version 1, 2 or 3, even a damaged one (see `warnings`).

        Versions 1 and 2 are rewritten as version 3 by the first append; the original is kept beside
        it as ``<name>.v1.bak``.

        Raises:
            SessionInUseError: Another process writes it; `read_only` still works.
            SessionNotWritableError: It may not be written; `read_only` still works.
            NewerFormatError: A newer version of the program made it; `read_only` still works.
            SessionError: The file cannot be read, or is no session.
        """
        if not path.is_file():
            raise SessionError(f"{path} does not exist.", "{sessions}")
        lock = None if read_only else SessionLock(path)
        try:
            state, parsed = read_session(path)
            if not parsed.looks_like_session:
                raise SessionError(f"{path} is not a session file: it contains no entries.")
            if lock is not None:
                _refuse_newer(path, parsed.header)
        except SessionError:
            if lock is not None:
                lock.release()
            raise
        writer = None
        if lock is not None:
            writer = SessionWriter(path, durability, open_file, lock)
            writer.resume(parsed, state)
        return cls(path, parsed.header, writer, parsed, is_read_only=read_only)

    @classmethod
    def write(
        cls,
        path: Path | None,
        header: Header,
        entries: Sequence[Entry],
        durability: Durability = "entry",
        *,
        open_file: OpenFile = DiskFile,
    ) -> Self:
        """Create a session with `entries`, whose file appears complete or not at all.

        Raises:
            SessionError: The file could not be written and does not exist.
        """
        log = cls.create(path, header, durability, open_file=open_file)
        ends_pulled = bool(entries) and entries[-1].pulled_from is not None
        mark = (CustomEntry(custom_type=_CONTINUES_HERE),) if ends_pulled else ()
        placed, lines = log._place((*entries, *mark))
        if log._writer is not None:
            try:
                log._writer.write_whole(encode_header(header) + lines)
            except SessionError:
                log.close()
                raise
        log._commit(placed)
        return log

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries in file order."""
        if self._entries is None:
            self._entries = tuple(self._by_id.values())
        return self._entries

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems found in the file when it was opened, each with its line number."""
        return self._warnings

    @property
    def leaf_id(self) -> str | None:
        """The entry that becomes the parent of the next one."""
        return self._leaf_id

    @property
    def is_read_only(self) -> bool:
        """Whether appending is refused."""
        return self._is_read_only

    @property
    def name(self) -> str:
        """The newest name of the session, or empty."""
        return name_of(self.header, self.entries)

    def append(self, entry: EntryT) -> EntryT:
        """Write one entry as a child of the leaf and return it with its ids.

        Raises:
            SessionError: Nothing was added; the call may be retried.
        """
        return cast(EntryT, self.append_many((entry,))[0])

    def append_many(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """Write several entries at once, each a child of the one before.

        An empty or duplicate id is replaced; a compaction without a first kept entry gets itself as
        one.

        Raises:
            SessionError: Nothing was added; the call may be retried.
        """
        if self._is_read_only or self._is_closed:
            state = "closed" if self._is_closed else "open read-only"
            raise SessionError(f"Session {self.header.id} is {state}.", "Continue with {new}.")
        placed, lines = self._place(entries)
        if self._writer is not None and placed:
            self._writer.write(self.header, self._by_id.values(), lines)
            if self.header.version < FORMAT_VERSION:
                self.header = self.header.model_copy(update={"version": FORMAT_VERSION})
        self._commit(placed)
        return placed

    def append_placed(self, entries: Sequence[Entry]) -> None:
        """Write entries at once that have ids and parents: they come from a copy of this session.

        Args:
            entries: Parents come before their children. `leaf_of` defines the leaf afterwards.

        Raises:
            SessionError: An id is taken, a parent is missing, or writing failed; nothing was added.
        """
        if self._is_read_only or self._is_closed or self._writer is None:
            raise SessionError(f"Session {self.header.id} is not open for writing.")
        known = set(self._by_id)
        placed: list[Entry] = []
        lines: list[bytes] = []
        for entry in entries:
            parent_is_known = entry.parent_id is None or entry.parent_id in known
            if not entry.id or entry.id in known or not parent_is_known:
                raise SessionError(f"Session {self.header.id} has no place for entry {entry.id}.")
            present, line = encode_repaired(entry)
            known.add(entry.id)
            placed.append(present)
            lines.append(line)
        if placed:
            self._writer.write(self.header, self._by_id.values(), b"".join(lines))
            self._commit(placed)
            leaf = leaf_of(self.entries)
            self.branch_to(leaf.id if leaf is not None else None)

    def branch_to(self, entry_id: str | None) -> None:
        """Make the next entry a child of `entry_id` (None: a new root). Writes nothing.

        Raises:
            SessionError: There is no such entry.
        """
        if entry_id is not None and entry_id not in self._by_id:
            raise SessionError(f"Session {self.header.id} has no entry {entry_id}.")
        self._leaf_id = entry_id
        self._path_entries = None

    def path_entries(self) -> tuple[Entry, ...]:
        """The entries from the root to the leaf."""
        if self._path_entries is None:
            upward: list[Entry] = []
            present = self._leaf_id
            while present is not None:
                entry = self._by_id[present]
                upward.append(entry)
                present = entry.parent_id
            self._path_entries = tuple(reversed(upward))
        return self._path_entries

    def sync(self) -> None:
        """Make sure that the file has the whole session and is on disk (at the end of a turn).

        With durability "none", the system decides when it reaches the disk.

        Raises:
            SessionError: The disk reports an error; what was written may not survive a crash.
        """
        if self._writer is not None:
            self._writer.ensure_kept(self.header, self._by_id.values())
            self._writer.sync()

    def take_mends(self) -> tuple[str, ...]:
        """Repairs since the last call: the file was deleted or replaced."""
        return self._writer.take_mends() if self._writer is not None else ()

    def note_state(self, state: SessionState) -> None:
        """Tell other programs what this one does with the session; see `running_session`."""
        if self._writer is not None:
            self._writer.note_state(state)

    def close(self) -> None:
        """Sync, close the file and release the lock; a second call does nothing."""
        self._is_closed = True
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _place(self, entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], bytes]:
        """`entries` with ids, as a chain below the leaf, and their lines for the file."""
        fresh: set[str] = set()
        parent_id = self._leaf_id
        placed: list[Entry] = []
        lines: list[bytes] = []
        for entry in entries:
            own_id = entry.id
            while not own_id or own_id in self._by_id or own_id in fresh:
                own_id = new_entry_id(fresh)
            changes: dict[str, object] = {"id": own_id, "parent_id": parent_id}
            if isinstance(entry, CompactionEntry) and not entry.first_kept_entry_id:
                changes["first_kept_entry_id"] = own_id
            present, line = encode_repaired(entry.model_copy(update=changes))
            placed.append(present)
            lines.append(line)
            fresh.add(own_id)
            parent_id = own_id
        return tuple(placed), b"".join(lines)

    def _commit(self, placed: Sequence[Entry]) -> None:
        if not placed:
            return
        self._leaf_id = placed[-1].id
        self._entries = None
        if self._path_entries is not None:
            self._path_entries += tuple(placed)
        for entry in placed:
            self._by_id[entry.id] = entry
            if (completed := complete_result(entry, self._by_id)) is not None:
                self._by_id[completed.id] = completed
                self._path_entries = None


def name_of(header: Header, entries: Sequence[Entry]) -> str:
    """The newest name of the session with this header, or empty.

    Others name only the sessions that they began, and only until they are named here.
    """
    named = [entry for entry in entries if isinstance(entry, SessionInfoEntry)]
    own = [entry for entry in named if entry.pulled_from is None]
    counted = own or (named if header.pulled_from else [])
    return counted[-1].name or "" if counted else ""


def _refuse_newer(path: Path, header: Header) -> None:
    if header.version > FORMAT_VERSION:
        raise NewerFormatError(
            f"{path} has format version {header.version}; this agent-tui supports versions up to "
            f"{FORMAT_VERSION}.",
            "Update agent-tui to continue it; `agent-tui sessions show` can read it.",
        )
