"""Removes what was stored, unless a program uses it; never follows a link."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.file_locks import read_holder
from agent_tui.installation import COMMAND
from agent_tui.paths import FOLDER_VARIABLES
from agent_tui.safe_paths import is_link

_PROCESSES: Final = Path("/proc")
_PLACES: Final = frozenset(
    {"HOME", *(f"XDG_{name}_HOME" for name in ("CONFIG", "DATA", "CACHE", "STATE"))}
    | set(FOLDER_VARIABLES)
)
"""The variables that say where the program's folders are."""


def running_programs() -> list[int]:
    """The processes of other runs of agent-tui with the same folders, as far as the system tells.

    One that has no session yet holds no lock, but it may use all folders.
    """
    own = {name: os.environ[name] for name in _PLACES if name in os.environ}
    return [int(one.name) for one in _processes() if _is_program(one) and _places(one) == own]


def _is_program(process: Path) -> bool:
    words = _texts(process / "cmdline")
    return COMMAND in map(os.path.basename, words[:2]) or words[1:3] == ["-m", "agent_tui"]


def _places(process: Path) -> dict[str, str]:
    pairs = (text.partition("=") for text in _texts(process / "environ"))
    return {name: value for name, _, value in pairs if name in _PLACES}


def _texts(file: Path) -> list[str]:
    try:
        return os.fsdecode(file.read_bytes()).rstrip("\0").split("\0")
    except OSError:
        return []


def user_of(path: Path) -> str:
    """Another program that uses something at or below `path`; empty if none is known. Blocking.

    A program uses a lock that it holds and, as far as the system tells, its working folder and the
    files that it has open or mapped.
    """
    for folder, _, names in os.walk(path):
        for name in names:
            if name.endswith(".lock") and (holder := read_holder(Path(folder, name))) is not None:
                return f"a program (pid {holder.pid})" if holder.pid else "a program"
    if path.name.endswith(".lock") and read_holder(path) is not None:
        return "a program"
    within = os.path.realpath(path)
    for process in _processes():
        if any(used == within or used.startswith(within + os.sep) for used in _used(process)):
            return f"a program (pid {process.name})"
    return ""


def remove(path: Path) -> None:
    """Remove the file, link or folder at `path`. Blocking.

    Raises:
        OSError: Some of it could not be removed.
    """
    if is_link(path) or not path.is_dir():
        path.unlink()
        return
    _make_writable(path)
    shutil.rmtree(path)


def _make_writable(folder: Path) -> None:
    """Let the owner change the folders below `folder`: some package managers close theirs."""
    for _, _, _, handle in os.fwalk(folder, follow_symlinks=False):
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            with suppress(OSError):  # then it is not ours, and removing fails
                os.fchmod(handle, mode | stat.S_IRWXU)


def _processes() -> Iterator[Path]:
    with suppress(OSError):
        others = (entry for entry in _PROCESSES.iterdir() if entry.name != str(os.getpid()))
        yield from (entry for entry in others if entry.name.isdecimal())


def _used(process: Path) -> Iterator[str]:
    """The working folder, open files and mapped files of a process that may be looked at."""
    with suppress(OSError):
        yield str((process / "cwd").readlink())
    with suppress(OSError):
        for opened in (process / "fd").iterdir():
            with suppress(OSError):
                yield str(opened.readlink())
    with suppress(OSError):
        for line in (process / "maps").read_text("utf-8", "surrogateescape").splitlines():
            yield line[line.find(os.sep) :] if os.sep in line else ""
