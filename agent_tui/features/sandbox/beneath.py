"""Changes files in folders that commands write, where any folder may become a link at any time.

Each path component is opened without following links, and the operation uses the opened folder:
nothing outside the working folders is read or written.
"""

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from agent_tui.regular_files import read_at, read_regular_file

MOST_BYTES: Final = 1_000_000
"""Bytes of a file that outside programs read; larger ones are not examined."""

_MOST_COPIED: Final = 200_000_000

_DEEPEST: Final = 100
"""Folders in each other that are copied to another disk; what is deeper is left out."""

_USERS_ATTRIBUTES: Final = ("user.", "system.posix_acl_access")

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


@contextmanager
def writable_folder_of(path: Path, roots: Sequence[Path]) -> Generator[int]:
    """Open the folder that contains `path` as `folder_of` does, and have us write there meanwhile.

    If it is ours and read-only, it has its mode back at the end.
    """
    with folder_of(path, roots) as folder:
        if os.access(".", os.W_OK | os.X_OK, dir_fd=folder):
            yield folder
            return
        mode = stat.S_IMODE(os.fstat(folder).st_mode)
        with suppress(OSError):
            os.fchmod(folder, mode | stat.S_IRWXU)
        try:
            yield folder
        finally:
            with suppress(OSError):
                os.fchmod(folder, mode)


def write_at(
    folder: int, name: str, content: bytes, mode: int = 0o644, like: os.stat_result | None = None
) -> None:
    """Write a new file with `content` at `name` in one step, replacing a file or link there.

    It keeps the access list and the user's attributes of that file, but none of the times.

    Args:
        folder: From `writable_folder_of`.
        name: The file's name.
        content: Its content.
        mode: Its mode.
        like: A file whose owner and group it gets, as far as the system lets us.

    Raises:
        OSError: It cannot be written, or a folder is there.
    """
    scratch = f".agent-tui-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(scratch, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if like is not None:
                _give(descriptor, like)
            _copy_attributes(f"/proc/self/fd/{folder}/{name}", descriptor)
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
        with writable_folder_of(path, roots) as folder:
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            write_at(folder, path.name, *read_at(folder, path.name, _MOST_COPIED), status)
            times = status.st_atime_ns, status.st_mtime_ns
            os.utime(path.name, ns=times, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _give(descriptor: int, like: os.stat_result) -> None:
    """Give the owner and the group of `like` to an open file; only root may change the owner."""
    for owner in (like.st_uid, -1):
        with suppress(OSError):
            os.fchown(descriptor, owner, like.st_gid)
            return


def _copy_attributes(path: str, descriptor: int) -> None:
    """Copy the extended attributes that users may set from `path` to an open file (Linux).

    Not what the system derives from the place or the content of a file (labels, capabilities).
    """
    if sys.platform != "linux":
        return
    with suppress(OSError):  # nothing is there, or the file system has none
        for name in os.listxattr(path, follow_symlinks=False):
            if name.startswith(_USERS_ATTRIBUTES):
                with suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(path, name, follow_symlinks=False))


def make_folders(path: Path, roots: Sequence[Path]) -> None:
    """Create the folder `path` and missing parents.

    Raises:
        OSError: Something else is there.
    """
    missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    for each in reversed(missing):
        with writable_folder_of(each, roots) as folder:
            os.mkdir(each.name, dir_fd=folder)


def open_up(folder: int | None, name: str) -> int | None:
    """Give us, its owner, all rights in the folder `name`, or the right to read that file.

    A command may take them away, so that nobody but root finds or moves what it left there. Links
    stay as they are.

    Args:
        folder: From `folder_of`; None for an absolute path that no command can change.
        name: The name there, or the path.

    Returns:
        The mode that it had; None if it cannot be changed.
    """
    with suppress(OSError):
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            mode = os.fstat(handle).st_mode
            if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                ours = stat.S_IRWXU if stat.S_ISDIR(mode) else stat.S_IRUSR
                Path(f"/proc/self/fd/{handle}").chmod(stat.S_IMODE(mode) | ours)
                return stat.S_IMODE(mode)
        finally:
            os.close(handle)
    return None


def reopen(folder: Path) -> None:
    """Give us back all rights in our own `folder`, around it and in it.

    Where no mount hides it, a command can take them away by its path.
    """
    for around in reversed(folder.parents):
        _reopen(around)
    pending = [folder]
    for each in pending:
        if _reopen(each):
            with suppress(OSError):
                pending += each.iterdir()


def _reopen(path: Path) -> bool:
    """Open `path` if it is ours and closed; returns whether it is a folder."""
    try:
        status = path.lstat()
    except OSError:
        return False
    is_folder = stat.S_ISDIR(status.st_mode)
    needed = stat.S_IRWXU if is_folder else stat.S_IRUSR
    if status.st_uid == os.geteuid() and status.st_mode & needed != needed:
        open_up(None, os.fspath(path))
    return is_folder


def read_own(file: Path) -> bytes:
    """The content of a file in our own folder, whatever mode a command gave it.

    Raises:
        OSError: It cannot be read.
    """
    try:
        return read_regular_file(file)
    except PermissionError:
        reopen(file)
        return read_regular_file(file)


def list_own(folder: Path) -> list[Path]:
    """What is in our own `folder`, whatever mode a command gave it; nothing if it is missing."""
    try:
        return list(folder.iterdir())
    except PermissionError:
        reopen(folder)
    except OSError:
        return []
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def remove_folder(path: Path) -> None:
    """Remove a folder, however deep, with all in it that commands closed, as far as we may."""
    with suppress(OSError), folder_of(path, (path.parent,)) as around:
        _remove_at(around, path.name)


def remove_files(path: Path) -> None:
    """Remove all files in a folder; links stay, and the folders on the way to them."""
    with suppress(OSError), folder_of(path, (path.parent,)) as around:
        _remove_files_at(around, path.name)


def _remove_files_at(around: int, name: str, depth: int = 0) -> None:
    folder = _open_folder(around, name)
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not entry.is_symlink()]
        for entry in found:
            with suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=folder)
                    continue
                if depth < _DEEPEST:
                    _remove_files_at(folder, entry.name, depth + 1)
                else:
                    _remove_at(folder, entry.name)
                os.rmdir(entry.name, dir_fd=folder)
    finally:
        os.close(folder)


def _remove_at(around: int, name: str) -> None:
    """Remove the folder `name`; what is deeper is moved up first, as no path leads to it.

    Raises:
        OSError: Something in it cannot be removed.
    """
    top = _open_folder(around, name)
    try:
        left = list[str]()
        while (folders := _remove_files(top)) and folders != left:
            left = folders
            for each in folders:
                with suppress(OSError):
                    _move_up(top, each)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=around)


def _move_up(top: int, name: str) -> None:
    """Move the folders in the folder `name` to `top`, and remove all else in it, and itself."""
    folder = _open_folder(top, name)
    try:
        for below in _remove_files(folder):
            open_up(folder, below)
            os.rename(below, secrets.token_hex(8), src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _open_folder(around: int, name: str) -> int:
    open_up(around, name)
    return os.open(name, _FOLDER, dir_fd=around)


def _remove_files(folder: int) -> list[str]:
    """Remove all that is directly in `folder`, but return the folders."""
    with os.scandir(folder) as entries:
        found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    for name in found:
        if not found[name]:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
    return sorted(name for name, is_folder in found.items() if is_folder)


def _open(name: str, flags: int, folder: int) -> int:
    """Open what a command may have closed.

    Raises:
        OSError: It is gone, or another user's.
    """
    try:
        return os.open(name, flags, dir_fd=folder)
    except PermissionError:
        open_up(folder, name)
        return os.open(name, flags, dir_fd=folder)


def move_out(folder: int, name: str, target: Path) -> None:
    """Move a file, a link or a whole folder to `target`: in one step on the same file system.

    Raises:
        OSError: It is gone, or cannot be moved.
    """
    try:
        try:
            os.rename(name, target, src_dir_fd=folder)
        except PermissionError:
            open_up(folder, name)
            os.rename(name, target, src_dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        _copy(folder, name, status.st_mode, target)
        if stat.S_ISDIR(status.st_mode):
            _remove_at(folder, name)
        else:
            os.unlink(name, dir_fd=folder)


def replace_at(folder: int, name: str, content: bytes, mode: int, target: Path) -> None:
    """Move what is at `name` to `target`, and write a file with `content` in its place.

    There is a file at each moment, if there was one: this program may be killed at any.

    Raises:
        OSError: It is gone, or cannot be moved or written.
    """
    try:
        os.link(name, target, src_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if error.errno == errno.EXDEV and not stat.S_ISDIR(status.st_mode):
            _copy(folder, name, status.st_mode, target)
        else:
            move_out(folder, name, target)
    write_at(folder, name, content, mode, target.lstat())


def move_in(folder: int, name: str, target: Path, roots: Sequence[Path]) -> None:
    """Move the folder `name` with all modes to `target` in `roots`, where nothing is.

    Raises:
        OSError: It cannot be moved.
    """
    with writable_folder_of(target, roots) as around:
        try:
            os.rename(name, target.name, src_dir_fd=folder, dst_dir_fd=around)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            place = f"/proc/self/fd/{around}/{target.name}"
            shutil.copytree(f"/proc/self/fd/{folder}/{name}", place, symlinks=True)
            _remove_at(folder, name)


def copy_entry(source: Path, target: Path) -> None:
    """Copy a file, a link or a whole folder.

    Raises:
        OSError: It is gone, or cannot be copied.
    """
    with folder_of(source, (source.parent,)) as folder:
        status = os.stat(source.name, dir_fd=folder, follow_symlinks=False)
        _copy(folder, source.name, status.st_mode, target)


def _copy(folder: int, name: str, mode: int, target: Path, depth: int = 0) -> None:
    """Copy one entry; pipes, sockets and devices are left out."""
    if stat.S_ISDIR(mode):
        if depth == _DEEPEST:
            return
        below = _open(name, _FOLDER, folder)
        try:
            target.mkdir(mode=0o700)
            with os.scandir(below) as entries:
                found = [(each.name, each.stat(follow_symlinks=False).st_mode) for each in entries]
            for entry, entry_mode in found:
                _copy(below, entry, entry_mode, target / entry, depth + 1)
        finally:
            os.close(below)
    elif stat.S_ISLNK(mode):
        target.symlink_to(os.readlink(name, dir_fd=folder))
    elif stat.S_ISREG(mode):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        opened = os.fdopen(_open(name, flags, folder), "rb")
        with opened as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy)
