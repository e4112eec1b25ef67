"""Removes what was stored, unless a program uses it; never follows a link."""

import itertools
import os
import shutil
import stat
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from agent_tui import paths
from agent_tui.file_locks import read_holder
from agent_tui.installation import COMMAND, DISTRIBUTION
from agent_tui.safe_paths import is_link, real_path

_PROCESSES: Final = Path("/proc")
_SCRIPTS: Final = frozenset({COMMAND, DISTRIBUTION})
_VARIABLES: Final = frozenset(
    {"HOME", *(f"XDG_{name}_HOME" for name in ("CONFIG", "DATA", "CACHE", "STATE"))}
    | set(paths.FOLDER_VARIABLES)
)
"""The variables that say where the program's folders are."""


def running_programs() -> list[int]:
    """The processes of other runs of agent-tui that share a folder, as far as the system tells.

    The folders are those of data, caches and the log. A run without a session holds no lock, but it
    may use all of them.
    """
    own = _folders(os.environ, _PROCESSES / "self")
    return [int(one.name) for one in _processes() if _is_program(one) and own & _folders_of(one)]


def _is_program(process: Path) -> bool:
    words = _texts(process / "cmdline") or [""]
    name = Path(words[0]).name
    if not name.startswith(("python", "pypy")):
        return name in _SCRIPTS
    rest = list(itertools.dropwhile(_is_option, words[1:]))
    return rest[:2] == ["-m", "agent_tui"] or (bool(rest) and Path(rest[0]).name in _SCRIPTS)


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-m"


def _folders_of(process: Path) -> frozenset[Path]:
    """The folders of a run; none if its environment cannot be read."""
    pairs = [text.partition("=") for text in _texts(process / "environ")]
    return _folders({name: value for name, _, value in pairs}, process) if pairs else frozenset()


def _folders(environ: Mapping[str, str], process: Path) -> frozenset[Path]:
    """The real folders of data, caches and the log of a process with these variables."""
    with _variables(environ):
        found = (paths.user_data_dir(), paths.user_cache_dir(), paths.log_file().parent)
    return frozenset(real_path(process / "cwd" / folder) for folder in found)


@contextmanager
def _variables(environ: Mapping[str, str]) -> Generator[None]:
    """Take the folders' variables from `environ`: `paths` and platformdirs read our own."""
    own, given = map(_chosen, (os.environ, environ))
    try:
        _replace_variables(given)
        yield
    finally:
        _replace_variables(own)


def _chosen(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: environ[name] for name in _VARIABLES & environ.keys()}


def _replace_variables(pairs: Mapping[str, str]) -> None:
    for name in _VARIABLES:
        os.environ.pop(name, None)
    os.environ.update(pairs)


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
