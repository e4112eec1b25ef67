"""Which named unix sockets belong to programs outside a wall, whatever names they have by now.

A socket can be connected to even on a read-only mount, and from another network. What counts is its
file: it may have another name than the one it was bound to, and more than one.
"""

import errno
import os
import re
import socket
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.errors import ToolError
from agent_tui.features.sandbox import sockets_process
from agent_tui.safe_paths import real_path
from agent_tui.tools.processes.keeper import ProcessKeeper

_NAME: Final = re.compile(rb" (/.*)$", re.MULTILINE)
_PATIENCE_S: Final = 10.0


def is_socket(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of a folder is a named socket. For other kinds no file is looked at."""
    if any(is_it(follow_symlinks=False) for is_it in (entry.is_file, entry.is_dir)):
        return False
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def find_sockets_of_others(
    seen: Iterable[Path], own: Path, pid: int, keeper: ProcessKeeper
) -> tuple[Path, ...]:
    """The named sockets of programs outside, without links. Blocking.

    Outside of working folders, they are searched for where sockets were bound.

    Args:
        seen: The sockets in working folders, whoever made them.
        own: The folder of our sockets for the wall; none in it counts.
        pid: A process inside, by its id outside. What it and others there bound does not count.
        keeper: Starts the process that asks for these, outside.
    """
    found = dict.fromkeys(real_path(path) for path in (*seen, *_near_bound_names()))
    served = {path: file for path in found if own not in path.parents and (file := _served(path))}
    inside = _bound_inside(pid, keeper) if served else frozenset[str]()
    return tuple(sorted(path for path, file in served.items() if file not in inside))


def _near_bound_names() -> Iterator[Path]:
    """The sockets in the folders in which a program outside has bound one by its full path."""
    try:
        table = Path("/proc/net/unix").read_bytes()
    except OSError:
        return
    for folder in {Path(os.fsdecode(name)).parent for name in _NAME.findall(table)}:
        with suppress(OSError), os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if is_socket(entry))


def _served(path: Path) -> str:
    """What identifies the socket at `path` for the kernel; empty if commands can reach none there.

    The kernel says whether a process has it: it refuses a connection of a wrong kind differently,
    and a datagram socket does not notice one. A socket that we may not connect to may be served.
    """
    if not _is_reached_without_capabilities(path):
        return ""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(handle)
            if not stat.S_ISSOCK(status.st_mode):
                return ""
            with suppress(OSError):
                if probe.connect_ex(f"/proc/self/fd/{handle}") == errno.ECONNREFUSED:
                    return ""
            return _kernels_name(handle, status.st_ino)
        finally:
            os.close(handle)
    return ""


def _kernels_name(handle: int, inode: int) -> str:
    """The device and inode of an open file as `sockets_process` prints them.

    They can differ from those of ``stat``: on btrfs the device, on overlays both.
    """
    told = Path(f"/proc/self/fdinfo/{handle}").read_text().split()
    fields = dict(zip(told[::2], told[1::2], strict=False))
    mounts = Path("/proc/self/mountinfo").read_bytes().splitlines()
    of_mount = (line.split(None, 3) for line in mounts)
    mount = fields["mnt_id:"].encode()
    device = next((words[2].decode() for words in of_mount if words[0] == mount), "?")
    return f"{device} {int(fields.get('ino:', inode)) & 0xFFFFFFFF}"


def _bound_inside(pid: int, keeper: ProcessKeeper) -> frozenset[str]:
    """What identifies the sockets bound inside; empty if the kernel does not say."""
    words = [sys.executable, "-I", "-S", sockets_process.__file__, str(pid)]
    with suppress(OSError, ToolError):
        code, said = keeper.run(words, cwd=Path(os.sep), environ={}, timeout_s=_PATIENCE_S)
        if code == 0:
            return frozenset(said.decode().splitlines())
    return frozenset()


def _is_reached_without_capabilities(path: Path) -> bool:
    """Whether we may enter all folders on the way to `path`, counting root only as an owner."""
    if os.geteuid() != 0:
        return True
    for folder in path.parents:
        try:
            found = folder.stat()
        except OSError:
            return False
        ours = (stat.S_IXUSR if found.st_uid == 0 else 0) | (
            stat.S_IXGRP if not found.st_gid else 0
        )
        if not found.st_mode & (ours | stat.S_IXOTH):
            return False
    return True
