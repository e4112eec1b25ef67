"""Looking at paths that anybody may have written: what no file can be called is not there.

`pathlib` raises for a name that is too long or lies in a folder that is closed to us (OSError),
for a NUL and a lone surrogate (ValueError), for links in a circle and the home folder of somebody
unknown (RuntimeError). A path that comes from a model, a session or an editor can be any of these.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

_UNUSABLE: Final = (OSError, RuntimeError, ValueError)
_MAX_PATH_BYTES: Final = 8_192
"""Twice what Linux takes in one call. Following links takes time by the square of the length."""


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
    """The ``.git`` in `folder` or nearest above it, whatever it is; None where there is none."""
    places = (place / ".git" for place in (folder, *folder.parents))
    return next(filter(os.path.lexists, places), None)


def resolve_path(written: str | Path, folder: Path) -> Path:
    """What `written` names for somebody in `folder`: absolute, ``~`` expanded, links followed.

    Raises:
        OSError: No file can have this name, or links lead in a circle.
    """
    try:
        whole = folder / Path(written).expanduser()
        if _is_too_long(str(whole)):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        return whole.resolve()
    except (RuntimeError, ValueError) as error:
        raise OSError(errno.EINVAL, str(error)) from error


def follow_links(path: str) -> str:
    """`path` absolute, with links followed as far as there are any.

    A path longer than the system takes leads through no link: it only loses its ``..``.

    Raises:
        OSError: No file can have this name.
    """
    try:
        if _is_too_long(path):
            path = os.path.normpath(path)
        return path if _is_too_long(path) else os.path.realpath(path)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from error


@contextlib.contextmanager
def opened_folder(folder: Path, *, makes: bool = False) -> Generator[int]:
    """A handle of `folder`, whose path leads through no link, as `follow_links` gives it.

    What is done by the handle is done there, even if a command puts a link on the way meanwhile.

    Args:
        folder: Absolute.
        makes: Make what is missing.

    Raises:
        OSError: A link is on the way, or it is not there.
    """
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
    handle = os.open(folder.anchor, flags)
    try:
        for part in folder.parts[1:]:
            if makes:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            below = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def _is_too_long(path: str) -> bool:
    return len(os.fsencode(path)) > _MAX_PATH_BYTES


def _holds(looks: Callable[[], bool]) -> bool:
    try:
        return looks()
    except _UNUSABLE:
        return False
