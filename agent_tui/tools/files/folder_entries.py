"""Lists folders, also those that cannot be listed, and names the folders that builds fill."""

import errno
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

REBUILT_FOLDERS: Final = frozenset(
    (
        *("node_modules", "bower_components", "site-packages", "__pycache__", "__pypackages__"),
        *(".tox", ".nox", ".venv", "venv", ".mypy_cache", ".ruff_cache"),
        *(".pytest_cache", ".next", ".nuxt", ".turbo", ".gradle", ".terraform", "DerivedData"),
    )
)
"""Folders that builds and package managers fill with thousands of unimportant folders: only a
repository in one, however deep, or a file with keys directly in one counts."""

SAME_MOMENT_NS: Final = 50_000_000
"""A folder changed shortly before a look is read again: file systems have coarse clocks."""


class ListStamp(NamedTuple):
    """When the list of a folder's entries was read.

    Args:
        changed_ns: Its ``ctime``, which no program can set, and a new entry changes; 0 if it may
            change again without a difference.
        place: Device and inode.
    """

    changed_ns: int
    place: tuple[int, int]

    def differs(self, now: os.stat_result) -> bool:
        """Whether it is to be read again, given its status."""
        return now.st_ctime_ns != self.changed_ns or (now.st_dev, now.st_ino) != self.place


def list_folder(path: str) -> tuple[ListStamp, list[os.DirEntry[str]]]:
    """What is in a folder.

    Raises:
        OSError: It cannot be listed or entered.
    """
    if not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    began_ns = time.time_ns()
    status = os.lstat(path)
    with os.scandir(path) as found:
        entries = list(found)
    is_settled = status.st_ctime_ns < began_ns - SAME_MOMENT_NS
    stamp = ListStamp(status.st_ctime_ns if is_settled else 0, (status.st_dev, status.st_ino))
    return stamp, entries


def entries_in(folder: Path) -> list[os.DirEntry[str]]:
    """What is in `folder`, by name; nothing if it cannot be listed."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
    return []


def folders_in(folder: Path) -> list[Path]:
    """The folders in `folder`; none if it cannot be listed."""
    return [Path(entry) for entry in entries_in(folder) if entry.is_dir(follow_symlinks=False)]
