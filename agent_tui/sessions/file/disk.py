"""The few file operations a session needs, behind an interface that tests can make fail."""

import errno
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias

from agent_tui.atomic_files import scratch_beside, sync_file
from agent_tui.errors import SessionError, SessionNotWritableError
from agent_tui.paths import make_private_dir


class AppendFile(Protocol):
    """An open file that only grows. Every method may raise `OSError`."""

    def write(self, data: bytes) -> None:
        """Append all of `data`; after an error any part of it may be in the file."""
        ...

    def sync(self) -> None:
        """Return when everything written is on disk."""
        ...

    def is_deleted(self) -> bool:
        """Whether the file has no name any more."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


OpenFile: TypeAlias = Callable[[Path, bool], AppendFile]
"""Opens a file for appending; with true it must not exist yet and is made, mode 0600."""


class DiskFile:
    """An `AppendFile` on disk, unbuffered: one `write` is one system call.

    Dropped without `close`, it is closed all the same.
    """

    def __init__(self, path: Path, create: bool) -> None:
        flags = os.O_WRONLY | os.O_APPEND | (os.O_CREAT | os.O_EXCL if create else 0)
        self._descriptor = os.open(path, flags, 0o600)
        self._close = weakref.finalize(self, os.close, self._descriptor)

    def write(self, data: bytes) -> None:
        """Append all of `data`."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def sync(self) -> None:
        """Return when everything written is on disk."""
        sync_file(self._descriptor)

    def is_deleted(self) -> bool:
        """Whether the file has no name any more."""
        return os.fstat(self._descriptor).st_nlink == 0

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._close()


_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_new_file(path: Path, data: bytes, open_file: OpenFile, *, sync: bool) -> None:
    """Create a private file, and its folder, so that it appears complete or not at all.

    Raises:
        OSError: The file was not created.
    """
    make_private_dir(path.parent)
    with scratch_beside(path) as scratch:
        file = open_file(scratch, True)
        try:
            file.write(data)
            if sync:
                file.sync()
        finally:
            file.close()
        scratch.replace(path)
    if sync:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a new or renamed file's name durable, if the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            sync_file(descriptor)
        finally:
            os.close(descriptor)


def describe_fault(path: Path, action: str, error: OSError) -> SessionError:
    """The error for the user: file, cause and what to do. `action`: "read", "written"."""
    cause = error.strerror or str(error)
    kind = SessionError
    match error:
        case FileNotFoundError():
            hint = "The file or its folder is gone; nothing more can be saved to it."
        case OSError() if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            hint = "Check the permissions, or choose another folder with {session_dir}."
            kind = SessionNotWritableError if action != "read" else kind
        case OSError() if error.errno in _DISK_FULL:
            hint = "Free some space on the disk and try again."
        case _:
            hint = ""
    return kind(f"{path}: could not be {action}: {cause}.", hint)
