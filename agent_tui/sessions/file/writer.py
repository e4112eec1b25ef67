"""The file side of a session: one writer, created late, appended line by line, migrated."""

import errno
import filecmp
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from agent_tui.config import Durability
from agent_tui.errors import SessionError
from agent_tui.file_locks import FileLock, LockHeldError, LockOwner, read_holder
from agent_tui.paths import make_private_dir
from agent_tui.regular_files import open_regular_file, read_regular_file
from agent_tui.safe_paths import real_path
from agent_tui.sessions.entries import FORMAT_VERSION, Entry, Header
from agent_tui.sessions.file.disk import (
    AppendFile,
    OpenFile,
    describe_fault,
    sync_folder,
    write_new_file,
)
from agent_tui.sessions.format.codec import (
    UnreadableRecordError,
    decode_record,
    encode_header,
    encode_repaired,
)
from agent_tui.sessions.format.parse import ParsedSession

SessionState: TypeAlias = Literal["idle", "working", "waiting"]
"""What the program that has a session open does: nothing, a turn, or wait for an answer."""

_LOCK = ".lock"


class SessionInUseError(SessionError):
    """The program `owner` is writing the session at `path`."""

    def __init__(self, path: Path, owner: LockOwner) -> None:
        hint = owner.how_to_go_on or "Close it there first, or start a new session."
        super().__init__(f"{path} is open in {owner}.", hint)
        self.path = path
        self.owner = owner


class SessionLock:
    """The right to write one session, held from creation to `release`.

    It is taken on a file beside the session (``<name>.lock``, with the owner's pid in it),
    not on the session itself, so that it survives the rename of a migration. A file left by a
    killed process does not lock. It belongs to the process that took it: a fork of that process
    neither holds nor releases it.

    Raises:
        SessionInUseError: Another process, or another log in this one, holds it.
        SessionNotWritableError: The folder or the session may not be written.
        SessionError: The folder is gone, or its disk is full.
    """

    def __init__(self, session_path: Path) -> None:
        try:
            if session_path.exists() and not os.access(session_path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            self._lock = FileLock(Path(os.path.realpath(session_path) + _LOCK))
        except LockHeldError as error:
            raise SessionInUseError(session_path, error.owner) from error
        except OSError as error:
            raise describe_fault(session_path, "opened for writing", error) from error

    @property
    def is_ours(self) -> bool:
        """Whether this process may write: false in a fork of the one that took the lock."""
        return self._lock.is_held

    @property
    def is_in_place(self) -> bool:
        """Whether other processes still see it: false after its file was deleted."""
        return self._lock.is_in_place

    def note_state(self, state: SessionState) -> None:
        """Tell other programs what this one does with the session."""
        self._lock.write_note(state)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        self._lock.release()


@dataclass(frozen=True, slots=True)
class RunningSession:
    """A session that a program has open: the program's process, and what it does.

    `since_s` is when it began to do that, in seconds since 1970.
    """

    pid: int
    state: SessionState
    since_s: float = 0.0


def running_session(path: Path) -> RunningSession | None:
    """The program that has the session at `path` open, this one included; None if none has.

    Takes microseconds and disturbs nobody. On file systems without locks, None.
    """
    holder = read_holder(Path(os.path.realpath(path) + _LOCK))
    if holder is None:
        return None
    is_known = holder.note in get_args(SessionState)
    state = cast("SessionState", holder.note) if is_known else "idle"
    return RunningSession(holder.pid, state, holder.since_s)


_MOST_HEADER_BYTES = 4_000_000
"""The header of a session that ``/compact`` began contains a summary, which is far smaller."""


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """A session file as it is now.

    Attributes:
        path: The file.
        cwd: The folder it works in; None if the file does not say.
        has_folder: Whether that folder exists; true if none is named.
        owner: The other program that writes it; None if none does.
        id: The session's id; empty if the file does not say.
    """

    path: Path
    cwd: Path | None
    has_folder: bool
    owner: LockOwner | None
    id: str = ""


def session_status(path: Path) -> SessionStatus:
    """The status of the session file `path`; an unreadable header names no folder. Blocking."""
    header = _header(path)
    folder = Path(header.cwd) if header is not None and header.cwd else None
    has_folder = folder is None or _is_dir(folder)
    return SessionStatus(path, folder, has_folder, _owner(path), header.id if header else "")


def _header(path: Path) -> Header | None:
    try:
        with open_regular_file(path) as file:
            header = decode_record(file.readline(_MOST_HEADER_BYTES).rstrip(b"\r\n")).value
    except (OSError, UnreadableRecordError):
        return None
    return header if isinstance(header, Header) else None


def _is_dir(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except (OSError, ValueError):  # a name that is too long or has a NUL: another program wrote it
        return False


def _owner(path: Path) -> LockOwner | None:
    try:
        SessionLock(path).release()
    except SessionInUseError as error:
        is_this = error.owner.pid == os.getpid() and not error.owner.host
        return None if is_this else error.owner
    except SessionError:
        return None  # the folder is not writable; opening the session for writing will report that
    return None


class SessionWriter:
    """Appends whole lines to one session file.

    After a failed write the file may end in a partial line; the next write ends it with a line
    break, so that only that part is lost. Nothing is truncated or overwritten. Symbolic links in
    the path stay, even in a migration. A file that somebody else deleted, replaced or truncated is
    written again from memory.
    """

    def __init__(
        self, path: Path, durability: Durability, open_file: OpenFile, lock: SessionLock | None
    ) -> None:
        self._shown_path = path
        self._path = real_path(path)
        self._durability: Durability = durability
        self._open_file = open_file
        self._lock = lock
        self._file: AppendFile | None = None
        self._exists = False
        self._has_header = False
        self._ends_clean = True
        self._old_version: int | None = None
        self._has_unsynced = False
        self._known: os.stat_result | None = None
        self._mends: list[str] = []
        self._state: SessionState = "idle"

    def note_state(self, state: SessionState) -> None:
        """Tell other programs what this one does with the session, once it has a file."""
        self._state = state
        if self._lock is not None:
            self._lock.note_state(state)

    def resume(self, parsed: ParsedSession, state: os.stat_result) -> None:
        """Continue with the file that contained `parsed` and had the given `state`."""
        self._exists = True
        self._known = state
        self._has_header = parsed.has_header
        self._ends_clean = parsed.ends_clean
        if parsed.has_header and parsed.header.version < FORMAT_VERSION:
            self._old_version = parsed.header.version

    def write(self, header: Header, before: Iterable[Entry], lines: bytes) -> None:
        """Write `lines`, after creating or migrating the file if needed.

        Args:
            header: The session's header, for a file that has none yet.
            before: The entries already in the file, for writing it again.
            lines: Whole lines.

        Raises:
            SessionError: Names the file and the cause; a part of `lines` may be in the file.
        """
        self._require_ours()
        try:
            if not self._exists:
                self._create(encode_header(header) + lines)
            elif why := self._why_lost():
                self._write_anew(why, header, before, lines)
            elif self._old_version is not None:
                self._migrate(self._old_version, header, before, lines)
            else:
                self._extend(header, lines)
            self._look_at_file()
        except OSError as error:
            self._close_file()
            raise describe_fault(self._shown_path, "written", error) from error
        self._has_header = self._ends_clean = True

    def ensure_kept(self, header: Header, entries: Iterable[Entry]) -> None:
        """Write the file again with all `entries` if it has lost what was written.

        Raises:
            SessionError: The file could not be written.
        """
        if not self._exists or self._lock is None or not self._lock.is_ours:
            return
        try:
            if why := self._why_lost():
                self._write_anew(why, header, entries, b"")
                self._look_at_file()
        except OSError as error:
            raise describe_fault(self._shown_path, "written", error) from error

    def take_mends(self) -> tuple[str, ...]:
        """Repairs since the last call, as texts for the user."""
        mends = tuple(self._mends)
        self._mends.clear()
        return mends

    def write_whole(self, lines: bytes) -> None:
        """Create the file from `lines` (with header) so that it appears complete or not at all.

        Raises:
            SessionError: Names the file and the cause; there is no file.
        """
        try:
            self._make_room()
            write_new_file(self._path, lines, self._open_file, sync=self._durability != "none")
        except OSError as error:
            raise describe_fault(self._shown_path, "written", error) from error
        self._exists = self._has_header = True
        with suppress(OSError):
            self._look_at_file()

    def sync(self) -> None:
        """Flush everything written to disk, unless durability is "none".

        Raises:
            SessionError: The disk reports an error; what was written may not survive a crash.
        """
        if self._file is None or not self._has_unsynced or self._durability == "none":
            return
        try:
            self._file.sync()
        except OSError as error:
            raise describe_fault(self._shown_path, "flushed to disk", error) from error
        self._has_unsynced = False

    def close(self) -> None:
        """Sync and close the file, and release the lock."""
        try:
            self.sync()
        finally:
            self._close_file()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _require_ours(self) -> None:
        if self._lock is not None and not self._lock.is_ours:
            raise SessionError(f"The parent of this process is writing {self._shown_path}.")

    def _why_lost(self) -> str:
        """What happened to the file if it has lost what was written; empty if it has not.

        A file that was moved, alone or with its folder, is still used. A file of the same size with
        another inode is a restored copy, which is fine.
        """
        try:
            there = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            is_moved = self._file is not None and not self._file.is_deleted()
            return "" if is_moved else "deleted"
        if self._known is None:
            return ""
        if os.path.samestat(there, self._known):
            return "cut short" if there.st_size < self._known.st_size else ""
        self._close_file()
        return "" if there.st_size == self._known.st_size else "replaced by another file"

    def _look_at_file(self) -> None:
        """Record the file's state after a write; a moved file keeps the known state."""
        with suppress(FileNotFoundError, NotADirectoryError):
            self._known = self._path.stat()

    def _write_anew(self, why: str, header: Header, before: Iterable[Entry], lines: bytes) -> None:
        self._close_file()
        if self._lock is not None and not self._lock.is_in_place:
            self._lock.release()
            self._lock = None
        self._make_room()
        kept = self._keep_original("found") if self._path.exists() else None
        self._write_all(header, before, lines)
        found = f" The content found there is kept as {kept.name}." if kept else ""
        self._mends.append(
            f"{self._shown_path} was {why} while in use; the whole session was written again."
            f"{found}"
        )

    def _make_room(self) -> None:
        make_private_dir(self._path.parent)
        if self._lock is None:
            self._lock = SessionLock(self._shown_path)
            self._lock.note_state(self._state)

    def _create(self, lines: bytes) -> None:
        self._make_room()
        self._file = self._open_file(self._path, True)
        self._exists = True
        try:
            self._write(lines)
        except OSError:
            with suppress(OSError):  # otherwise the next write appends to what is in the file
                self._path.unlink()
                self._exists = False
            raise
        if self._durability != "none":
            sync_folder(self._path.parent)

    def _extend(self, header: Header, lines: bytes) -> None:
        if not self._has_header:
            lines = encode_header(header) + lines
        if not self._ends_clean:
            lines = b"\n" + lines
        if self._file is None:
            self._file = self._open_file(self._path, False)
        self._write(lines)

    def _write(self, lines: bytes) -> None:
        assert self._file is not None
        self._ends_clean = False  # until everything is written, however the write ends
        self._file.write(lines)
        self._has_unsynced = True
        if self._durability == "entry":
            self._file.sync()
            self._has_unsynced = False

    def _migrate(
        self, old_version: int, header: Header, before: Iterable[Entry], lines: bytes
    ) -> None:
        self._keep_original(f"v{old_version}")
        self._write_all(header, before, lines)

    def _write_all(self, header: Header, before: Iterable[Entry], lines: bytes) -> None:
        present = header.model_copy(update={"version": FORMAT_VERSION})
        earlier = b"".join(encode_repaired(entry)[1] for entry in before)
        whole = encode_header(present) + earlier + lines
        write_new_file(self._path, whole, self._open_file, sync=self._durability != "none")
        self._old_version = None

    def _keep_original(self, word: str) -> Path:
        """Give the original file another name, ``<name>.<word>.bak``, that no write uses."""
        original = self._path.with_name(f"{self._path.name}.{word}.bak")
        number = 2
        while original.exists():
            if filecmp.cmp(original, self._path, shallow=False):
                return original
            original = self._path.with_name(f"{self._path.name}.{word}-{number}.bak")
            number += 1
        try:
            os.link(self._path, original)
        except FileNotFoundError:
            raise
        except OSError:  # a file system without hard links
            data, sync = read_regular_file(self._path), self._durability != "none"
            write_new_file(original, data, self._open_file, sync=sync)
        return original

    def _close_file(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
