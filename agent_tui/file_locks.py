"""Locks between programs: the kernel's or, if the file system has none, a lock file."""

import errno
import fcntl
import os
import socket
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agent_tui.errors import ConfigError
from agent_tui.paths import make_private_dir
from agent_tui.regular_files import open_regular_file

if TYPE_CHECKING:
    from filelock import SoftFileLock

ReturnT = TypeVar("ReturnT")
_POLL_S = 0.05
_HAS_NO_LOCKS = frozenset(
    {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
)
_SOFT_SUFFIX = ".owner"
_SOFT_WITHIN_S = 0.2
"""Enough for a second try, after the file of a dead owner is removed."""

_MOST_OWNER_BYTES = 1_024
_LOCK_WITHIN_S = 10.0
_LOOK_S = 0.005


@dataclass(frozen=True, slots=True)
class LockOwner:
    """The program that holds a lock.

    Attributes:
        pid: Its process id; 0 if unknown.
        host: The machine it runs on, if it is not this one.
        file: The file to delete once that program is known to be gone; None if the kernel or the
            next program releases the lock.
    """

    pid: int
    host: str = ""
    file: Path | None = None

    def __str__(self) -> str:
        if not self.pid:
            return "another agent-tui"
        if self.pid == os.getpid() and not self.host:
            return "another part of this program"
        where = f" on {self.host}" if self.host else ""
        return f"another agent-tui (pid {self.pid}{where})"

    @property
    def how_to_go_on(self) -> str:
        """What to do if that program is gone and cannot release the lock; may be empty."""
        return f"If it is no longer running there, delete {self.file}." if self.file else ""


class LockHeldError(Exception):
    """Another program, or another part of this one, holds the lock."""

    def __init__(self, owner: LockOwner) -> None:
        super().__init__(str(owner))
        self.owner = owner


class FileLock:
    """The lock with the name `path`, held from creation to `release`.

    The kernel releases it when its owner dies. NFS without a lock service, Lustre and some others
    have no such locks: there a file beside it, ``<path>.owner``, names the host, the process and
    its start. The next program on that host removes the file of a dead owner; for another host this
    is unknown, so the user is told which file to delete.

    Raises:
        LockHeldError: Somebody else has it.
        OSError: The file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._owner_pid = os.getpid()
        self._soft: SoftFileLock | None = None
        self._descriptor: int | None = self._acquire()
        if self._descriptor is None:
            self._soft = _soft_lock(path)
        else:  # also when the lock is dropped without `release`
            self._close = weakref.finalize(self, os.close, self._descriptor)

    @property
    def is_held(self) -> bool:
        """Whether this process holds it: false after `release`, and in a fork of its owner."""
        has_it = self._descriptor is not None or self._soft is not None
        return has_it and self._owner_pid == os.getpid()

    @property
    def is_in_place(self) -> bool:
        """Whether other processes still see it: false after its file was deleted."""
        if self._soft is not None:
            return self._soft.is_lock_held_by_us
        return self._descriptor is not None and self._is_in_place(self._descriptor)

    def write_note(self, note: str) -> None:
        """Say in the lock file what its owner does, in one word, for `read_holder`.

        Does nothing on a file system without locks, or if the disk is full.
        """
        if self._descriptor is not None and self.is_held:
            _name_owner(self._descriptor, note)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._soft is not None:
            self._soft.release()
            self._soft = None
        if self._descriptor is None:
            return
        if self.is_held:
            with suppress(OSError):
                if self._is_in_place(self._descriptor):
                    self._path.unlink()
        self._close()
        self._descriptor = None

    def _acquire(self) -> int | None:
        """The descriptor with the kernel's lock; None if there are no such locks."""
        tries = 3
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if not lock_descriptor(descriptor):
                    self._remove_unused(descriptor)
                    os.close(descriptor)
                    return None
                if self._is_in_place(descriptor):
                    _name_owner(descriptor)
                    return descriptor
            except BlockingIOError as error:
                owner = LockOwner(_read_pid(descriptor))
                os.close(descriptor)
                tries -= 1
                if tries:  # `read_holder` may be looking, which takes microseconds
                    time.sleep(_LOOK_S)
                    continue
                raise LockHeldError(owner) from error
            except OSError:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _remove_unused(self, descriptor: int) -> None:
        with suppress(OSError):
            if os.fstat(descriptor).st_size == 0 and self._is_in_place(descriptor):
                self._path.unlink()

    def _is_in_place(self, descriptor: int) -> bool:
        """False if the file was removed, as the last owner does while the next one waits."""
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(descriptor))


@contextmanager
def hold_lock(path: Path, *, within_s: float) -> Generator[None]:
    """Hold the lock `path`, waiting up to `within_s` seconds for other holders. Blocking.

    Raises:
        LockHeldError: It was not released in that time.
        OSError: Its file cannot be created.
    """
    lock = _retry_within(within_s, _POLL_S, lambda: FileLock(path))
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that holds a lock on this machine, and its newest note (may be empty).

    `since_s` is when it wrote that note or took the lock, in seconds since 1970.
    """

    pid: int
    note: str
    since_s: float = 0.0


def read_holder(path: Path) -> LockHolder | None:
    """Who holds the kernel's lock `path`; None if nobody does, or it cannot be read.

    It never keeps others from taking a lock that is held, and creates nothing.
    """
    try:
        with open_regular_file(path) as file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                words = file.read(_MOST_OWNER_BYTES).decode("utf-8", "replace").split()
                pid = int(words[0]) if words and words[0].isdecimal() else 0
                since_s = os.fstat(file.fileno()).st_mtime
                return LockHolder(pid, words[1] if len(words) > 1 else "", since_s)
    except OSError:
        pass
    return None


def lock_descriptor(descriptor: int, *, waits: bool = False) -> bool:
    """Take the kernel's lock on an open file; false if its file system has no locks.

    Raises:
        BlockingIOError: Another program has it, and `waits` is false.
        OSError: The system reports an error.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _HAS_NO_LOCKS:
            raise
        return False
    return True


def lock_within(descriptor: int, within_s: float) -> None:
    """Take the kernel's lock on an open file, and name this program in it. Blocking.

    Does nothing on a file system without locks.

    Args:
        descriptor: The file, open for writing.
        within_s: How long to wait for other holders, in seconds.

    Raises:
        LockHeldError: It was not released in that time.
        OSError: The system reports an error.
    """

    def take() -> None:
        try:
            if lock_descriptor(descriptor):
                _name_owner(descriptor)
        except BlockingIOError as error:
            raise LockHeldError(LockOwner(_read_pid(descriptor))) from error

    _retry_within(within_s, _LOOK_S, take)


def _retry_within(within_s: float, pause_s: float, take: Callable[[], ReturnT]) -> ReturnT:
    """What `take` returns, once the lock is free; its error if that takes too long. Blocking."""
    until = time.monotonic() + within_s
    while True:
        try:
            return take()
        except LockHeldError:
            if time.monotonic() >= until:
                raise
        time.sleep(pause_s)


def _soft_lock(path: Path) -> "SoftFileLock":
    from filelock import SoftFileLock, Timeout  # few file systems need it

    file = path.with_name(path.name + _SOFT_SUFFIX)
    lock = SoftFileLock(file, mode=0o600, thread_local=False)
    try:
        lock.acquire(timeout=_SOFT_WITHIN_S, poll_interval=_POLL_S)
    except Timeout as error:
        raise LockHeldError(_soft_owner(file)) from error
    return lock


def _soft_owner(file: Path) -> LockOwner:
    """The owner that `file` names: process and host, on separate lines."""
    try:
        with open_regular_file(file) as opened:
            lines = opened.read(_MOST_OWNER_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return LockOwner(0)
    pid = int(lines[0]) if lines[0].isdecimal() else 0
    host = lines[1] if len(lines) > 1 else ""
    is_here = host == socket.gethostname()
    return LockOwner(pid) if is_here else LockOwner(pid, host, file)


def _name_owner(descriptor: int, note: str = "") -> None:
    """Write our pid into the lock file if the disk has space; the lock works without it."""
    text = f"{os.getpid()} {note}".strip().encode()
    with suppress(OSError):
        os.pwrite(descriptor, text, 0)
        os.ftruncate(descriptor, len(text))


def _read_pid(descriptor: int) -> int:
    words = os.pread(descriptor, _MOST_OWNER_BYTES, 0).split()
    return int(words[0]) if words and words[0].isdigit() else 0


@contextmanager
def lock_for_change(path: Path, hint: str) -> Generator[None]:
    """Lock `path` against changes by other runs; creates its folder.

    Raises:
        ConfigError: Another run held the lock too long, or the change raised an OSError; has
            `hint`.
    """
    try:
        make_private_dir(path.parent)
        with hold_lock(path.with_name(f"{path.name}.lock"), within_s=_LOCK_WITHIN_S):
            yield
    except LockHeldError as error:
        how = error.owner.how_to_go_on or hint
        raise ConfigError(f"{path} is in use by {error.owner}.", how) from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint) from error
