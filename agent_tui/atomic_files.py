"""Replace files in one step, and remove what killed programs left behind."""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Generator
from pathlib import Path

from agent_tui.file_locks import lock_descriptor
from agent_tui.paths import cache_folder, make_private_dir
from agent_tui.regular_files import open_regular_file

_PREFIX = ".agent-tui-"
_SUFFIX = ".tmp"
_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})
_SURELY_LEFT_S = 86_400
"""Without locks, it is unknown whether a program still writes; no write takes a day."""


@contextlib.contextmanager
def scratch_beside(path: Path) -> Generator[Path]:
    """Yield a new name beside `path`, for content to rename to `path` when complete.

    A file left under that name is removed at the end, or after a kill by `remove_leftovers` of a
    later start. For this, a note in the cache folder stores the name and is locked while in use; if
    the cache folder is not writable, there is no note.
    """
    token = os.urandom(8).hex()
    scratch = path.with_name(f"{_PREFIX}{token}{_SUFFIX}")
    with _note_scratch(token, scratch):
        try:
            yield scratch
        finally:
            with contextlib.suppress(OSError):
                scratch.unlink()


def remove_leftovers() -> None:
    """Remove files that killed programs were writing; files still being written stay."""
    try:
        notes = list(_notes_dir().iterdir())
    except OSError:  # there were never any
        return
    for note in notes:
        with contextlib.suppress(OSError):
            _remove_leftover(note)


def replace_private_file(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` in one step, readable only by the owner; creates its folder.

    Text is written as UTF-8.

    Raises:
        OSError: It cannot be written; the old file stays.
    """
    make_private_dir(path.parent)
    with scratch_beside(path) as scratch:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
        scratch.replace(path)


def sync_file(descriptor: int) -> None:
    """Return when the data of an open file is on disk, if its file system can tell.

    Raises:
        OSError: The disk reports an error; what was written may be lost.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def _notes_dir() -> Path:
    return cache_folder("unfinished")


@contextlib.contextmanager
def _note_scratch(token: str, scratch: Path) -> Generator[None]:
    try:
        note = make_private_dir(_notes_dir()) / token
        descriptor = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            lock_descriptor(descriptor)
            os.write(descriptor, os.fsencode(scratch.absolute()))
        yield
    finally:
        with contextlib.suppress(OSError):
            note.unlink()
        os.close(descriptor)


def _remove_leftover(note: Path) -> None:
    with open_regular_file(note) as file:
        is_locked = lock_descriptor(file.fileno())
        if not is_locked and time.time() - note.stat().st_mtime < _SURELY_LEFT_S:
            return
        scratch = Path(os.fsdecode(file.read()))
        if scratch.name == f"{_PREFIX}{note.name}{_SUFFIX}":
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                if stat.S_ISREG(scratch.lstat().st_mode):
                    scratch.unlink()
        note.unlink()
