"""Open files that a folder provides: pipes never block, and devices are refused."""

import errno
import io
import os
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFDIR: "folder",
}


class NotRegularFileError(OSError):
    """The file is a pipe, a socket or a device; `strerror` says which."""


def open_regular_file(
    path: Path, *, buffering: int = io.DEFAULT_BUFFER_SIZE, follow_links: bool = True
) -> io.BufferedReader | io.FileIO:
    """Open the regular file `path`, or a link to one, for reading. Never waits for a pipe.

    The null device counts as an empty file: people link to it to switch a file off.

    Args:
        path: The file.
        buffering: The size of the buffer in bytes; 0 for none.
        follow_links: False refuses a symbolic link (ELOOP).

    Raises:
        NotRegularFileError: Something else has this name.
        IsADirectoryError: It is a folder.
        OSError: It cannot be opened.
    """
    return _check(_open(path, 0 if follow_links else os.O_NOFOLLOW), path, buffering)


def open_in(folder: int, path: Path) -> io.BufferedReader | io.FileIO:
    """Open the regular file with the name of `path` in the open `folder`; refuses links.

    Raises:
        OSError: As `open_regular_file` says.
    """
    descriptor = _open(path, os.O_NOFOLLOW, folder)
    return _check(descriptor, path, io.DEFAULT_BUFFER_SIZE)


def read_at(folder: int, name: str | bytes, most_bytes: int) -> tuple[bytes, int]:
    """The content of the regular file `name` in the open `folder`, and its mode; refuses links.

    Made for thousands of files: it costs four system calls.

    Raises:
        OSError: It is not a regular file (ELOOP: a link), or has more than `most_bytes` (EFBIG).
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
            raise OSError(errno.EFBIG, "is no regular file, or a large one", os.fsdecode(name))
        content = os.read(descriptor, status.st_size + 1)
        is_whole = len(content) <= status.st_size  # otherwise it grows
        while not is_whole and len(content) <= most_bytes:
            more = os.read(descriptor, io.DEFAULT_BUFFER_SIZE)
            content, is_whole = content + more, not more
    finally:
        os.close(descriptor)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fsdecode(name))
    return content, stat.S_IMODE(status.st_mode)


def _check(descriptor: int, path: Path, buffering: int) -> io.BufferedReader | io.FileIO:
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) and not _is_null(status):
            raise _refusal(path, status.st_mode)
        os.set_blocking(descriptor, True)
        file = io.FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return io.BufferedReader(file, buffering) if buffering else file


def read_regular_file(path: Path) -> bytes:
    """All of the regular file `path`.

    Raises:
        OSError: As `open_regular_file` says.
    """
    with open_regular_file(path) as file:
        return file.read()


def kind_of_file(mode: int) -> str:
    """What a file of this `st_mode` is, in words: "regular file", "named pipe", "folder" ..."""
    return _KINDS.get(stat.S_IFMT(mode), "regular file")


def _open(path: Path, more_flags: int, folder: int | None = None) -> int:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | more_flags
    name = path if folder is None else path.name
    try:
        return os.open(name, flags | os.O_NONBLOCK, dir_fd=folder)
    except BlockingIOError:  # its lease is being released; only regular files have one
        if not stat.S_ISREG(path.stat().st_mode):
            raise
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # a socket, on Linux and macOS
            raise _refusal(path, path.stat().st_mode) from error
        raise


def _is_null(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == Path(os.devnull).stat().st_rdev


def _refusal(path: Path, mode: int) -> OSError:
    if stat.S_ISDIR(mode):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    why = f"Is a {kind_of_file(mode)}, not a regular file"
    return NotRegularFileError(errno.EINVAL, why, str(path))
