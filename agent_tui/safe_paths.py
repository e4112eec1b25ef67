"""Check paths from anybody, and look up programs only where commands may not write.

`pathlib` raises for a name that is too long or is in an unreadable folder (OSError), for a NUL and
a lone surrogate (ValueError), for cyclic links and an unknown user's home folder (RuntimeError). A
path that comes from a model, a session or an editor can be any of these.

A command in the sandbox may put a ``git`` into ``.venv/bin``, which is on ``PATH`` in many shells.
The list of such folders is global, because all parts of the program start programs.
"""

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

_written: set[str] = set()


def distrust_programs_in(folders: Iterable[Path]) -> None:
    """Mark `folders` as writable by commands, now or earlier."""
    _written.update(os.path.realpath(folder).rstrip(os.sep) + os.sep for folder in folders)


def distrust_programs_around(folder: Path, home: Path | None) -> None:
    """Mark `folder` as writable by commands, and the repository it is in.

    What contains `home` is not marked: the user's own programs are in it, too.
    """
    entry = git_entry(folder)
    folders = (folder, folder if entry is None else entry.parent)
    distrust_programs_in(each for each in folders if home is None or not home.is_relative_to(each))


def keep_trusted(path: str | None) -> str:
    """`path`, a ``PATH``, without relative folders and folders that commands may write."""
    entries = (path or os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(is_trusted, entries)) or os.defpath


def order_by_trust(path: str) -> str:
    """`path` with folders that commands may write moved to the end."""
    return os.pathsep.join(sorted(path.split(os.pathsep), key=lambda entry: not is_trusted(entry)))


def find_program(name: str, path: str | None = None) -> str | None:
    """The path of the program `name`; None if no trusted folder has it.

    Args:
        name: The name without a folder.
        path: A ``PATH``; None for our own.
    """
    return shutil.which(name, path=keep_trusted(os.environ.get("PATH") if path is None else path))


def resolve_command(command: Sequence[str]) -> list[str]:
    """`command` with the path of its program.

    Raises:
        OSError: No trusted folder has it.
    """
    if (program := find_program(command[0])) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    return [program, *command[1:]]


def is_trusted(entry: str) -> bool:
    """Whether the folder `entry` is absolute, and commands may not write it."""
    real = os.path.realpath(entry) + os.sep
    return entry.startswith(os.sep) and not any(real.startswith(folder) for folder in _written)


_UNUSABLE: Final = (OSError, RuntimeError, ValueError)
_ODD: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udcff]"
)
"""Control characters, line ends, what turns the direction of writing, and bytes that are not
UTF-8, as Python keeps them in names."""
_SHOWN: Final = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4})")
_PROC: Final = "/proc/"
_MOST_TRIES: Final = 10
_MAX_PATH_BYTES: Final = 8_192
"""Twice what Linux accepts in one call. Following links takes time quadratic in the length."""


def path_exists(path: Path) -> bool:
    """Whether something is at `path`, links followed."""
    return _holds(path.exists)


def is_file(path: Path) -> bool:
    """Whether a regular file is at `path`, links followed."""
    return _holds(path.is_file)


def is_folder(path: Path) -> bool:
    """Whether a folder is at `path`, links followed."""
    return _holds(path.is_dir)


def is_link(path: Path) -> bool:
    """Whether `path` itself is a link."""
    return _holds(path.is_symlink)


def git_entry(folder: Path) -> Path | None:
    """The ``.git`` in `folder` or nearest above it, of any kind; None if there is none."""
    places = (place / ".git" for place in places_around(folder))
    return next(filter(os.path.lexists, places), None)


def places_around(path: Path) -> tuple[Path, ...]:
    """`path` and the folders around it, innermost first.

    Of a path longer than the system accepts, which may have a million parents, only the outermost
    ones: nothing can be at the others.
    """
    if len(shown := os.fspath(path)) > _MAX_PATH_BYTES:
        path = Path(shown[:_MAX_PATH_BYTES]).parent
    return (path, *path.parents)


def real_path(path: str | Path) -> Path:
    """`path` made absolute, with links resolved; a link that leads to itself stays.

    `Path.resolve` raises RuntimeError for such a link.

    Raises:
        ValueError: There is a NUL in it.
    """
    return Path(_resolve_links(os.fspath(path)))


def resolve_path(written: str | Path, folder: Path) -> Path:
    """The path that `written` names in `folder`: absolute, ``~`` expanded, links resolved.

    Raises:
        OSError: No file can have this name, or links form a cycle.
    """
    try:
        whole = folder / Path(written).expanduser()
        if _is_too_long(str(whole)):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        path = real_path(whole)
    except (RuntimeError, ValueError) as error:
        raise OSError(errno.EINVAL, str(error)) from error
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise
    return path


def path_from(path: str | Path, folder: Path) -> str:
    """`path` as shown: relative if it is `folder` or below it, and with `show_name`."""
    place = Path(path)
    is_below = place.is_relative_to(folder)
    return show_name(place.relative_to(folder).as_posix() if is_below else str(path))


def show_name(name: str) -> str:
    r"""`name` on one line, as anybody can read and write it.

    A byte that is not UTF-8 becomes ``\xff``, a line end ``\x0a``, another control character
    ``\x1b``, and what turns the direction of writing ``\u202e``. So no name can look like a line
    of ours, or steer a terminal. `follow_shown` finds the file again.
    """
    return name if name.isascii() and name.isprintable() else _ODD.sub(_show, name)


def _show(odd: re.Match[str]) -> str:
    code = ord(odd[0])
    is_byte = code >= 0xDC00
    return rf"\x{code & 0xFF:02x}" if is_byte or code < 0x80 else rf"\u{code:04x}"


def follow_shown(path: Path) -> Path:
    """The existing path that `show_name` shows as the absolute `path`; else `path` itself.

    Of each folder on the way, the entry of exactly this name comes first, then the only one that is
    shown like it. Blocking.
    """
    if not _SHOWN.search(os.fspath(path)):
        return path
    place = Path(path.anchor)
    for part in path.relative_to(path.anchor).parts:
        name = part
        if _SHOWN.search(part) and not os.path.lexists(place / part):
            with contextlib.suppress(*_UNUSABLE):
                alike = [each.name for each in place.iterdir() if show_name(each.name) == part]
                name = alike[0] if len(alike) == 1 else part
        place /= name
    return place


def follow_links(path: str) -> str:
    """`path` made absolute, with links resolved.

    A path longer than the system accepts has no links: it is only normalized.

    Raises:
        OSError: No file can have this name.
    """
    try:
        if _is_too_long(path):
            path = os.path.normpath(path)
        return path if _is_too_long(path) else _resolve_links(path)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from error


def _resolve_links(path: str) -> str:
    """As `os.path.realpath`, which fails if a link is replaced by something else meanwhile."""
    for _ in range(_MOST_TRIES):
        with contextlib.suppress(OSError):
            return os.path.realpath(path)
    return os.path.realpath(path)


def trace_steps(path: Path) -> Iterator[tuple[Path, str]]:
    """Each place on the way to the absolute `path`, with its text if it is a link; the end is last.

    A place counts whether or not it exists, and also if ``..`` leaves it. What is in ``/proc``
    differs from process to process: the way ends there.
    """
    place, pending = Path(path.anchor), list(path.parts[1:])
    followed = 0
    while pending and followed < 40:  # the kernel's own limit
        step = place / pending.pop(0)
        if step.name == "..":
            place = place.parent
        elif not os.fspath(step).startswith(_PROC) and (text := read_link(step)):
            yield step, text
            followed += 1
            aim = Path(text)
            place = place / aim.anchor  # what is absolute begins anew
            pending = [*aim.relative_to(aim.anchor).parts, *pending]
        else:
            yield step, ""
            place = step
    yield place.joinpath(*pending), ""


def trace_links(path: Path) -> tuple[Path, dict[Path, str]]:
    """Where the absolute `path` leads, and the links on the way; see `trace_steps`."""
    steps = list(trace_steps(path))
    return steps[-1][0], {step: text for step, text in steps if text}


def read_link(path: Path) -> str:
    """The text of a link; empty for what is none."""
    with contextlib.suppress(OSError):
        return os.fspath(path.readlink())
    return ""


@contextlib.contextmanager
def open_folder(folder: Path, *, around: int | None = None, makes: bool = False) -> Generator[int]:
    """A handle of `folder`, whose path must have no links, as from `follow_links`.

    Operations on the handle stay there, even if a command adds a link to the path meanwhile.

    Args:
        folder: An absolute path, or a path in the folder `around`.
        around: The handle of an open folder.
        makes: Whether to create missing folders.

    Raises:
        OSError: The path has a link, or does not exist.
    """
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
    handle = os.open(folder.anchor or os.curdir, flags, dir_fd=around)
    try:
        for part in folder.relative_to(folder.anchor).parts:
            if makes:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            below = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def scan_folder(folder: Path) -> Generator[tuple[int, list[os.DirEntry[str]]]]:
    """A handle of `folder`, and what is in it, by name; `open_folder` says what its path must be.

    The entries are those of the handle, and can be examined as long as it is open.

    Raises:
        OSError: The path has a link or does not exist, or the folder cannot be listed.
    """
    with open_folder(folder) as opened:
        handle = os.open(os.curdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=opened)
    try:
        with os.scandir(handle) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        yield handle, found
    finally:
        os.close(handle)


def _is_too_long(path: str) -> bool:
    return len(os.fsencode(path)) > _MAX_PATH_BYTES


def _holds(looks: Callable[[], bool]) -> bool:
    try:
        return looks()
    except _UNUSABLE:
        return False
