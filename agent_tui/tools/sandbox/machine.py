"""What no command may read or reach on the machine: root's files, other programs' sockets."""

import os
import pwd
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

_SOCKET_FOLDER: Final = Path("/run")
"""Sockets of buses, container engines and agents, which act outside on request from inside."""

_SOCKET_VARIABLES: Final = (
    *("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"),
    *("DOCKER_HOST", "CONTAINER_HOST", "TMUX", "STY", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"),
    *("XDG_RUNTIME_DIR", "VSCODE_IPC_HOOK_CLI", "WSL_INTEROP"),
)
_SEARCHED: Final = (("/etc", 9), ("/var", 3))
"""Where services keep keys, and how deep to look: only root can read them, and we may be root."""

_SOCKET_NAME: Final = re.compile(rb" (/.*)$", re.MULTILINE)
_MOST_HIDDEN: Final = 200


def hidden_of_machine(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """What to hide in every wall. Blocking."""
    sockets = (Path(_address(environ.get(name, ""))) for name in _SOCKET_VARIABLES)
    found = [_SOCKET_FOLDER, *(path for path in sockets if path.is_absolute() and path.is_socket())]
    if os.geteuid() == 0:
        for folder, depth in _SEARCHED:
            found += _closed_to_others(Path(folder), depth)
    return tuple(found[:_MOST_HIDDEN])


def sockets_of_others(own: Path) -> tuple[Path, ...]:
    """The named sockets of programs outside; none in `own`. Blocking.

    A socket can be connected to even on a read-only mount, and from another network.
    """
    try:
        table = Path("/proc/net/unix").read_bytes()
    except OSError:
        return ()
    named = {Path(os.fsdecode(name)) for name in _SOCKET_NAME.findall(table)}
    found: list[Path] = []
    for path in sorted(named):
        with suppress(OSError):  # in a folder that nobody here may enter
            if path.is_socket() and own not in path.parents:
                found.append(path.resolve())
    return tuple(path for path in found if _is_reached_without_capabilities(path))


def _is_reached_without_capabilities(path: Path) -> bool:
    """Whether we may enter all folders on the way to `path`, counting root only as an owner."""
    if os.geteuid() != 0:
        return True
    for folder in path.parents:
        found = folder.stat()
        ours = (stat.S_IXUSR if found.st_uid == 0 else 0) | (
            stat.S_IXGRP if not found.st_gid else 0
        )
        if not found.st_mode & (ours | stat.S_IXOTH):
            return False
    return True


def without_sockets(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without the variables that name sockets, which do not exist inside."""
    return {name: value for name, value in environ.items() if name not in _SOCKET_VARIABLES}


def home_of_account() -> Path | None:
    """The home folder that the system knows, whatever ``HOME`` says."""
    with suppress(KeyError, OSError):
        home = Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
        return home if home.name and home.is_dir() else None
    return None


def _address(value: str) -> str:
    return value.partition(",")[0].rpartition("unix:")[2].removeprefix("path=").removeprefix("//")


def _closed_to_others(folder: Path, depth: int) -> Iterator[Path]:
    """What only its owner and group can read in `folder`, the outermost paths."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                continue
            if not mode & stat.S_IROTH:
                yield Path(entry.path)
            elif stat.S_ISDIR(mode) and depth:
                yield from _closed_to_others(Path(entry.path), depth - 1)
