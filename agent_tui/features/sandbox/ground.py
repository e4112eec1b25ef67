"""Tells whether the working folders are still those in which a command began."""

import os
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import real_path

REPLACED: Final = -1
"""Instead of a descriptor: something else has the path by now."""

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Ground:
    """The working folders as they were when the first running command began.

    They stay open until the next one begins: no other folder can get the inode of an open one.

    Args:
        roots: The working folders, without links.
        written: How the paths begin of what commands write elsewhere.
    """

    def __init__(self, roots: Iterable[Path], written: Iterable[str]) -> None:
        self._roots = tuple(roots)
        around = (*(f"{root}/" for root in self._roots), *written)
        self._movable = frozenset(
            root for root in self._roots if os.fspath(root).startswith(around)
        )
        self._opened: dict[Path, int] = {}
        self._told: set[Path] = set()
        self._finish = weakref.finalize(self, close_all, self._opened)

    def note(self) -> None:
        """Note that the folders that are there now are the ones commands begin in."""
        close_all(self._opened)
        self._told.clear()
        for root in self._roots:
            with suppress(OSError):
                self._opened[root] = os.open(root, _OPEN)

    def find_replaced(self) -> tuple[list[Path], bool]:
        """What has another folder in its place now, or none.

        Returns:
            Those that were not returned before, and whether any was replaced that no command can
            move.
        """
        replaced = {
            root for root, opened in self._opened.items() if not is_at(real_path(root), opened)
        }
        new = sorted(replaced - self._told)
        self._told |= replaced
        return new, not replaced <= self._movable

    def release(self) -> None:
        """Close the folders: no command runs or will run."""
        close_all(self._opened)


def is_at(path: Path, opened: int) -> bool:
    """Whether the file or folder at `path`, a link not followed, is the one that is `opened`."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(opened))
    except OSError:
        return False


def close_all(opened: dict[Path, int]) -> None:
    """Close the files `opened`, and forget them."""
    while opened:
        if (descriptor := opened.popitem()[1]) != REPLACED:
            os.close(descriptor)
