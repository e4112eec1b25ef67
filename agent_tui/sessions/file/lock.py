"""One writer per session file: an advisory lock the kernel gives back when the owner dies."""

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.sessions.file.disk import describe_fault


class SessionInUseError(SessionError):
    """The process `pid` (0 where it could not be found out) writes the session at `path`."""

    def __init__(self, path: Path, pid: int) -> None:
        owner = f"another agent-tui (pid {pid})" if pid else "another agent-tui"
        hint = "Close it there first, or begin a new session."
        super().__init__(f"{path} is open in {owner}.", hint)
        self.path = path
        self.pid = pid


class SessionLock:
    """The right to write one session, held from creation to `release`.

    It is taken on a file beside the session (``<name>.lock``, with the owner's pid in it),
    not on the session itself, so that it outlives the rename of a migration. A file left by a
    killed process is no lock: the kernel has let go of it. It belongs to the process that took
    it: a fork of that process neither holds it nor gives it back.

    Raises:
        SessionInUseError: Another process, or another log in this one, holds it.
        SessionNotWritableError: The folder or the session may not be written.
        SessionError: The folder is gone, or its disk is full.
    """

    def __init__(self, session_path: Path) -> None:
        self._path = Path(os.path.realpath(session_path) + ".lock")
        self._owner_pid = os.getpid()
        try:
            if session_path.exists() and not os.access(session_path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            self._descriptor: int | None = self._acquire(session_path)
        except OSError as error:
            raise describe_fault(session_path, "opened for writing", error) from error

    @property
    def is_ours(self) -> bool:
        """Whether this process may write: false in a fork of the one that took the lock."""
        return self._descriptor is not None and self._owner_pid == os.getpid()

    @property
    def is_in_place(self) -> bool:
        """Whether others still meet it: false once its file was deleted."""
        return self._descriptor is not None and self._is_in_place(self._descriptor)

    def release(self) -> None:
        """Give the session free; does nothing the second time."""
        if self._descriptor is None:
            return
        if self.is_ours:
            with suppress(OSError):
                if self._is_in_place(self._descriptor):
                    self._path.unlink()
        os.close(self._descriptor)
        self._descriptor = None

    def _acquire(self, session_path: Path) -> int:
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_in_place(descriptor):
                    _name_owner(descriptor)
                    return descriptor
            except BlockingIOError as error:
                pid = _read_pid(descriptor)
                os.close(descriptor)
                raise SessionInUseError(session_path, pid) from error
            except OSError:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _is_in_place(self, descriptor: int) -> bool:
        """False if the file was removed, as the last owner does while the next one waits."""
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        ours = os.fstat(descriptor)
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _name_owner(descriptor: int) -> None:
    """Put our pid into the lock file, where the disk has room for it; it locks all the same."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())


def _read_pid(descriptor: int) -> int:
    text = os.pread(descriptor, 20, 0)
    return int(text) if text.isdigit() else 0
