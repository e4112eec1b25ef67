"""Changes files in folders that commands write, where any folder may become a link at any time.

Each path component is opened without following links, and the operation uses the opened folder:
nothing outside the working folders is read or written.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 1_000_000
"""Bytes of a file that outside programs read; larger ones are not examined."""

_MOST_COPIED: Final = 200_000_000

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def folder_of(path: Path, roots: Sequence[Path]) -> Generator[int]:
    """Open the folder that contains `path`; yields its descriptor.

    Raises:
        OSError: It does not exist, a link is on the way, or it is not in `roots`.
    """
    around = [root for root in roots if path.is_relative_to(root) and path != root]
    root = max(around, key=lambda root: len(root.parts), default=None)
    if root is None:
        raise OSError(errno.EXDEV, "is outside the folders worked in", str(path))
    folder = os.open(root, _FOLDER)
    try:
        for part in path.relative_to(root).parent.parts:
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def read_at(folder: int, name: str, most_bytes: int = MOST_BYTES) -> tuple[bytes, int]:
    """The content of a regular file, and its mode.

    Raises:
        OSError: It is not a regular file, or is longer than `most_bytes`.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    descriptor = os.open(name, flags, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
            raise OSError(errno.EFBIG, "is no regular file, or a large one", name)
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), name)
    return content, stat.S_IMODE(status.st_mode)


def write_at(
    folder: int, name: str, content: bytes, mode: int = 0o644, like: os.stat_result | None = None
) -> None:
    """Write a new file with `content` at `name` in one step, replacing a file or link there.

    Args:
        folder: From `folder_of`.
        name: The file's name.
        content: Its content.
        mode: Its mode.
        like: A file whose owner and group it gets, as far as the system lets us.

    Raises:
        OSError: It cannot be written, or a folder is there.
    """
    scratch = f".agent-tui-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(scratch, flags, 0o600, dir_fd=folder)
    except PermissionError:
        open_up(folder, ".")
        descriptor = os.open(scratch, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if like is not None:
                _give(descriptor, like)
            os.fchmod(descriptor, mode & 0o777)
        os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(scratch, dir_fd=folder)
        raise


def separate(path: Path, roots: Sequence[Path]) -> bool:
    """Replace a file that has other names by a copy, so that a change of one is none of the other.

    Returns:
        False if it cannot be done, also because the file is too large.
    """
    try:
        with folder_of(path, roots) as folder:
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            write_at(folder, path.name, *read_at(folder, path.name, _MOST_COPIED), status)
    except OSError:
        return False
    return True


def _give(descriptor: int, like: os.stat_result) -> None:
    """Give the owner and the group of `like` to an open file; only root may change the owner."""
    for owner in (like.st_uid, -1):
        with suppress(OSError):
            os.fchown(descriptor, owner, like.st_gid)
            return


def make_folders(path: Path, roots: Sequence[Path]) -> None:
    """Create the folder `path` and missing parents.

    Raises:
        OSError: Something else is there.
    """
    missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    for each in reversed(missing):
        with folder_of(each, roots) as folder:
            os.mkdir(each.name, dir_fd=folder)


def open_up(folder: int, name: str) -> None:
    """Give us, its owner, all rights in the folder `name`; anything else stays as it is.

    A command may take them away, so that nobody but root finds or moves what it left there.
    """
    with suppress(OSError):
        handle = os.open(name, _FOLDER | os.O_PATH, dir_fd=folder)
        try:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            Path(f"/proc/self/fd/{handle}").chmod(mode | stat.S_IRWXU)
        finally:
            os.close(handle)


def move_out(folder: int, name: str, target: Path) -> None:
    """Move a file, a link or a whole folder to `target`: in one step on the same file system.

    Raises:
        OSError: It is gone, or cannot be moved.
    """
    try:
        try:
            os.rename(name, target, src_dir_fd=folder)
        except PermissionError:
            for each in (".", name):
                open_up(folder, each)
            os.rename(name, target, src_dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        _copy(folder, name, status.st_mode, target)
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def move_in(folder: int, name: str, target: Path, roots: Sequence[Path]) -> None:
    """Move the folder `name` with all modes to `target` in `roots`, where nothing is.

    Raises:
        OSError: It cannot be moved.
    """
    with folder_of(target, roots) as around:
        try:
            os.rename(name, target.name, src_dir_fd=folder, dst_dir_fd=around)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            place = f"/proc/self/fd/{around}/{target.name}"
            shutil.copytree(f"/proc/self/fd/{folder}/{name}", place, symlinks=True)
            shutil.rmtree(name, dir_fd=folder)


def copy_entry(source: Path, target: Path) -> None:
    """Copy a file, a link or a whole folder.

    Raises:
        OSError: It is gone, or cannot be copied.
    """
    with folder_of(source, (source.parent,)) as folder:
        status = os.stat(source.name, dir_fd=folder, follow_symlinks=False)
        _copy(folder, source.name, status.st_mode, target)


def _copy(folder: int, name: str, mode: int, target: Path) -> None:
    """Copy one entry; pipes, sockets and devices are left out."""
    if stat.S_ISDIR(mode):
        below = os.open(name, _FOLDER, dir_fd=folder)
        try:
            target.mkdir(mode=0o700)
            with os.scandir(below) as entries:
                found = [(each.name, each.stat(follow_symlinks=False).st_mode) for each in entries]
            for entry, entry_mode in found:
                _copy(below, entry, entry_mode, target / entry)
        finally:
            os.close(below)
    elif stat.S_ISLNK(mode):
        target.symlink_to(os.readlink(name, dir_fd=folder))
    elif stat.S_ISREG(mode):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        opened = os.fdopen(os.open(name, flags, dir_fd=folder), "rb")
        with opened as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy)
