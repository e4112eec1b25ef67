"""Adds mounts inside a wall, from outside: ``python -I -S mounts_process.py PID``, list on stdin.

Each entry of the list is a kind, a path, and what to show there (may be empty). Only a
single-threaded process may enter the user namespace of another, so this one is started for it. What
commands inside do meanwhile to the paths can only change what they see themselves: only existing
paths are mounted.
"""

import ctypes
import fcntl
import json
import os
import sys
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_NS_GET_USERNS = 0xB701
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC = 1, 2, 4, 32, 4096, 16384
_MS_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""Flags that a mount must keep when it is made read-only, from ``statvfs`` to ``mount``."""

_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Add the mounts listed on stdin for the process that the command line names."""
    words: list[tuple[str, str, str]] = json.load(sys.stdin)
    _enter(int(sys.argv[1]))
    for kind, path, source in words:
        if not _is_there(path) or os.path.realpath(path) != path:
            continue  # it is gone, or leads elsewhere: the caller checks again
        is_there = kind == "copied" or Path(source).is_file()
        _lay(kind, path, source if is_there else os.devnull)


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # in another user's folder: commands cannot enter it either
        return False


def _enter(pid: int) -> None:
    """Enter the mount namespace of `pid`, and the user namespace that it belongs to.

    That may be one around the process's own: bubblewrap creates two for non-root users.
    """
    mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    users = fcntl.ioctl(mounts, _NS_GET_USERNS)
    _check(_libc.setns(users, _CLONE_NEWUSER), "user namespace")
    _check(_libc.setns(mounts, _CLONE_NEWNS), "mount namespace")
    os.chdir("/")


def _lay(kind: str, path: str, source: str) -> None:
    match kind:
        case "lifted":
            _check(_libc.umount2(os.fsencode(path), _MNT_DETACH | _UMOUNT_NOFOLLOW), path)
        case "hidden" if Path(path).is_dir():
            _mount("tmpfs", path, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_RDONLY)
        case "hidden":
            _mount(source, path, "", _MS_BIND)
            _remount(path, _MS_RDONLY)
        case "read-only":
            _mount(path, path, "", _MS_BIND | _MS_REC)
            _remount(path, _MS_RDONLY)
        case "copied":
            _mount(source, path, "", _MS_BIND)
            _remount(path)
        case _:
            _mount(path, path, "", _MS_BIND | _MS_REC)


def _remount(path: str, added: int = 0) -> None:
    """Make the mount at `path` writable, unless `added` says otherwise, without devices."""
    flags = os.statvfs(path).f_flag
    kept = sum(flag for told, flag in _MS_FLAGS.items() if flags & told)
    _mount("", path, "", _MS_BIND | _MS_REMOUNT | added | kept | _MS_NODEV | _MS_NOSUID)


def _mount(source: str, path: str, kind: str, flags: int) -> None:
    words = (os.fsencode(word) or None for word in (source, path, kind))
    _check(_libc.mount(*words, ctypes.c_ulong(flags), None), path)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    main()
