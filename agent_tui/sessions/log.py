"""One session: an append-only file and its in-memory twin."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from agent_tui.config import Durability
from agent_tui.errors import SessionError
from agent_tui.paths import make_private_dir
from agent_tui.sessions.entries import (
    FORMAT_VERSION,
    CompactionEntry,
    Entry,
    Header,
    SessionInfoEntry,
    new_entry_id,
)
from agent_tui.sessions.files import (
    AppendFile,
    DiskFile,
    OpenFile,
    describe_fault,
    sync_folder,
    write_new_file,
)
from agent_tui.sessions.lines import encode_entry, encode_header, repair_entry
from agent_tui.sessions.lock import SessionInUseError, SessionLock
from agent_tui.sessions.parse import ParsedSession, parse_session

__all__ = ["SessionInUseError", "SessionLog"]

EntryT = TypeVar("EntryT", bound=Entry)


class SessionLog:
    """Entries of one session, each written before it is part of the twin.

    Build it with `create`, `open` or, with the lines written at once, `write`. An append that
    fails leaves the twin as it was; what it may have left in the file is closed off with a
    line end by the next one. Nothing is ever cut off or overwritten. One thread uses a log.
    """

    def __init__(
        self,
        path: Path | None,
        parsed: ParsedSession,
        durability: Durability,
        open_file: OpenFile,
        *,
        lock: SessionLock | None = None,
        is_read_only: bool = False,
        exists: bool = False,
    ) -> None:
        self.path = path
        self.header = parsed.header
        self._warnings = parsed.warnings
        self._durability: Durability = durability
        self._open_file = open_file
        self._lock = lock
        self._is_read_only = is_read_only
        self._exists = exists
        self._has_header = parsed.has_header
        self._ends_clean = parsed.ends_clean
        self._needs_migration = exists and parsed.has_header and parsed.header.version < 3
        self._file: AppendFile | None = None
        self._is_closed = False
        self._has_unsynced = False
        self._by_id = {entry.id: entry for entry in parsed.entries}
        self._entries: tuple[Entry, ...] | None = parsed.entries
        self._leaf_id = parsed.entries[-1].id if parsed.entries else None
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
        """A new, empty session. The file is made by the first append; None: memory only."""
        return cls(path, _new_session(header), durability, open_file)

    @classmethod
    def open(
        cls,
        path: Path,
        durability: Durability = "entry",
        *,
        read_only: bool = False,
        open_file: OpenFile = DiskFile,
    ) -> Self:
        """Read a session of version 1, 2 or 3, damaged ones too (see `warnings`).

        Versions 1 and 2 are rewritten as version 3 by the first append; the file as it was is
        kept beside it as ``<name>.v1.bak``.

        Raises:
            SessionInUseError: Another process writes it; `read_only` works all the same.
            SessionError: The file cannot be read, or is no session.
        """
        lock = None if read_only else SessionLock(_existing(path))
        try:
            try:
                data = path.read_bytes()
            except OSError as error:
                raise describe_fault(path, "read", error) from error
            parsed = parse_session(data, fallback_id=path.stem.rpartition("_")[2])
            if not parsed.looks_like_session:
                raise SessionError(f"{path} is not a session file.", "Nothing in it is an entry.")
        except SessionError:
            if lock is not None:
                lock.release()
            raise
        return cls(
            path, parsed, durability, open_file, lock=lock, is_read_only=read_only, exists=True
        )

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
        """A new session with `entries`, whose file shows up whole or not at all.

        Raises:
            SessionError: The file could not be written; there is none then.
        """
        log = cls.create(path, header, durability, open_file=open_file)
        placed, leaf_id = log._place(entries)
        if path is not None:
            lines = encode_header(header) + b"".join(encode_entry(entry) for entry in placed)
            try:
                make_private_dir(path.parent)
                log._lock = SessionLock(path)
                write_new_file(path, lines, open_file, sync=durability != "none")
            except OSError as error:
                log.close()
                raise describe_fault(path, "written", error) from error
            log._exists = log._has_header = True
        log._commit(placed, leaf_id)
        return log

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries in file order."""
        if self._entries is None:
            self._entries = tuple(self._by_id.values())
        return self._entries

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong with the file when it was opened, each with its line number."""
        return self._warnings

    @property
    def leaf_id(self) -> str | None:
        """The entry whose child the next one becomes."""
        return self._leaf_id

    @property
    def is_read_only(self) -> bool:
        """Whether appending is refused."""
        return self._is_read_only

    @property
    def name(self) -> str:
        """The newest name given to the session, or an empty text."""
        for entry in reversed(self.entries):
            if isinstance(entry, SessionInfoEntry):
                return entry.name or ""
        return ""

    def append(self, entry: EntryT) -> EntryT:
        """Write one entry as a child of the leaf and return it with its ids.

        Raises:
            SessionError: Nothing was added; the same call may be tried again.
        """
        return cast(EntryT, self.append_many((entry,))[0])

    def append_many(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """Write several entries, each the child of the one before, in one go.

        An id that is empty or taken is made anew; a compaction without a first kept entry gets
        itself as one.

        Raises:
            SessionError: Nothing was added; the same call may be tried again.
        """
        if self._is_read_only or self._is_closed:
            state = "closed" if self._is_closed else "open read-only"
            raise SessionError(f"Session {self.header.id} is {state}.", "Fork it to go on.")
        placed, leaf_id = self._place(entries)
        if self.path is not None and placed:
            self._write(self.path, placed)
        self._commit(placed, leaf_id)
        return placed

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
        """Bring everything written to the disk (the end of a turn); does nothing for "none".

        Raises:
            SessionError: The disk reports an error; what was written may not survive a crash.
        """
        if self._file is None or self.path is None or not self._has_unsynced:
            return
        if self._durability != "none":
            try:
                self._file.sync()
            except OSError as error:
                raise describe_fault(self.path, "brought to the disk", error) from error
        self._has_unsynced = False

    def close(self) -> None:
        """Let go of file and lock; a second call does nothing."""
        self._is_closed = True
        try:
            self.sync()
        finally:
            self._close_file()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _place(self, entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], str | None]:
        """`entries` with ids, as a chain below the leaf, and the leaf after them."""
        taken = set(self._by_id)
        parent_id = self._leaf_id
        placed: list[Entry] = []
        for entry in entries:
            own_id = entry.id if entry.id and entry.id not in taken else new_entry_id(taken)
            changes: dict[str, object] = {"id": own_id, "parent_id": parent_id}
            if isinstance(entry, CompactionEntry) and not entry.first_kept_entry_id:
                changes["first_kept_entry_id"] = own_id
            placed.append(repair_entry(entry.model_copy(update=changes)))
            taken.add(own_id)
            parent_id = own_id
        return tuple(placed), parent_id

    def _commit(self, placed: Sequence[Entry], leaf_id: str | None) -> None:
        self._by_id.update((entry.id, entry) for entry in placed)
        self._leaf_id = leaf_id
        self._entries = None
        self._path_entries = None

    def _write(self, path: Path, placed: Sequence[Entry]) -> None:
        lines = b"".join(encode_entry(entry) for entry in placed)
        try:
            if not self._exists:
                self._create_file(path, encode_header(self.header) + lines)
            elif self._needs_migration:
                self._migrate(path, lines)
            else:
                self._extend_file(path, lines)
        except OSError as error:
            self._ends_clean = False
            self._close_file()
            raise describe_fault(path, "written", error) from error

    def _create_file(self, path: Path, lines: bytes) -> None:
        make_private_dir(path.parent)
        if self._lock is None:
            self._lock = SessionLock(path)
        self._file = self._open_file(path, True)
        try:
            self._put(lines)
        except OSError:
            with suppress(OSError):
                path.unlink()
            raise
        if self._durability != "none":
            sync_folder(path.parent)
        self._exists = self._has_header = True

    def _extend_file(self, path: Path, lines: bytes) -> None:
        if not self._has_header:
            lines = encode_header(self.header) + lines
        if not self._ends_clean:
            lines = b"\n" + lines
        if self._file is None:
            self._file = self._open_file(path, False)
        self._put(lines)
        self._ends_clean = self._has_header = True

    def _put(self, lines: bytes) -> None:
        assert self._file is not None
        self._file.write(lines)
        self._has_unsynced = True
        if self._durability == "entry":
            self._file.sync()
            self._has_unsynced = False

    def _migrate(self, path: Path, lines: bytes) -> None:
        header = self.header.model_copy(update={"version": FORMAT_VERSION})
        before = b"".join(encode_entry(repair_entry(entry)) for entry in self.entries)
        original = path.with_name(f"{path.name}.v{self.header.version}.bak")
        if not original.exists():
            os.link(path, original)
        whole = encode_header(header) + before + lines
        write_new_file(path, whole, self._open_file, sync=self._durability != "none")
        self.header = header
        self._needs_migration = False
        self._ends_clean = True

    def _close_file(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None


def _new_session(header: Header) -> ParsedSession:
    return ParsedSession(
        header, (), (), has_header=False, ends_clean=True, looks_like_session=True
    )


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise SessionError(f"{path} does not exist.", "`agent-tui sessions list` shows them all.")
    return path
