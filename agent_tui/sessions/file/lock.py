"""One writer per session file, and who writes a session before it is opened."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from agent_tui.errors import SessionError
from agent_tui.file_locks import FileLock, LockHeldError, LockOwner, read_holder
from agent_tui.regular_files import open_regular_file
from agent_tui.sessions.entries import Header
from agent_tui.sessions.file.disk import describe_fault
from agent_tui.sessions.format.codec import UnreadableRecordError, decode_record

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
    """A session that a program has open: the program's process, and what it does."""

    pid: int
    state: SessionState


def running_session(path: Path) -> RunningSession | None:
    """The program that has the session at `path` open, this one included; None if none has.

    Takes microseconds and disturbs nobody. On file systems without locks, None.
    """
    holder = read_holder(Path(os.path.realpath(path) + _LOCK))
    if holder is None:
        return None
    is_known = holder.note in get_args(SessionState)
    return RunningSession(holder.pid, cast("SessionState", holder.note) if is_known else "idle")


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
    """

    path: Path
    cwd: Path | None
    has_folder: bool
    owner: LockOwner | None


def session_status(path: Path) -> SessionStatus:
    """The status of the session file `path`; an unreadable header names no folder. Blocking."""
    folder = _folder(path)
    return SessionStatus(path, folder, folder is None or _is_dir(folder), _owner(path))


def _folder(path: Path) -> Path | None:
    try:
        with open_regular_file(path) as file:
            header = decode_record(file.readline(_MOST_HEADER_BYTES).rstrip(b"\r\n")).value
    except (OSError, UnreadableRecordError):
        return None
    return Path(header.cwd) if isinstance(header, Header) and header.cwd else None


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
