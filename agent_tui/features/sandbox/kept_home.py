"""The stand-in for the home folder at the same path in each conversation of a working folder.

Where a wall cannot mount over the home folder, programs record the path of its stand-in: pnpm that
of its store, a virtual environment that of its Python. So it stays at its path, with its links to
what exists; all else in it is made anew for each wall. Pythons that commands install are kept.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.features.sandbox.beneath import remove_files, remove_folder
from agent_tui.file_locks import lock_descriptor
from agent_tui.paths import make_private_dir
from agent_tui.safe_paths import is_folder

HOMES: Final = "homes"
PYTHONS: Final = ".local/share/uv/python"
"""Where uv installs Pythons."""

_MOST_PROGRAMS: Final = 8
"""Programs at a time in one working folder that have such a place each."""


@dataclass(frozen=True, slots=True)
class KeptHome:
    """A place for the stand-ins of one program in one working folder, which it has locked.

    Args:
        folder: Ours; commands write only in the two folders in it.
        lock: The descriptor that holds the lock.
    """

    folder: Path
    lock: int

    @property
    def home(self) -> Path:
        """The stand-in for the home folder."""
        return self.folder / "home"

    @property
    def pythons(self) -> Path:
        """Where Pythons that commands install stay."""
        return self.folder / "python"

    def move_in(self, fresh: Path) -> Path:
        """Put the finished stand-in `fresh` in the place of the one before; returns its new path.

        Raises:
            OSError: It cannot be moved.
        """
        before = fresh.with_name(f"{fresh.name}-before")
        with suppress(FileNotFoundError):
            self.home.rename(before)
        fresh.rename(self.home)
        remove_folder(before)
        return self.home

    def leave(self) -> None:
        """Remove what commands left, but for links and Pythons, and release the lock."""
        remove_files(self.home)
        os.close(self.lock)


def take_kept_home(parent: Path, working_folder: Path) -> KeptHome | None:
    """Lock a place for the stand-ins of a program in `working_folder`. Blocking.

    Args:
        parent: Where all places are.
        working_folder: Without links.

    Returns:
        The place; None if none is to be had, and the path cannot stay the same.
    """
    with suppress(OSError):
        _remove_abandoned(parent)
        key = hashlib.sha256(os.fsencode(working_folder)).hexdigest()[:16]
        for number in range(_MOST_PROGRAMS):
            kept = _lock(make_private_dir(parent / f"{key}-{number}"))
            if kept is not None:
                (kept.folder / "of").write_bytes(os.fsencode(working_folder))
                kept.pythons.mkdir(mode=0o700, exist_ok=True)
                return kept
    return None


def _lock(folder: Path) -> KeptHome | None:
    """Lock `folder`, unless another program has, or the disk has no locks."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    with suppress(OSError):
        if lock_descriptor(handle):
            return KeptHome(folder, handle)
    os.close(handle)
    return None


def _remove_abandoned(parent: Path) -> None:
    """Remove the places of working folders that were deleted; a disk may only be missing."""
    for folder in _list(parent):
        with suppress(OSError):
            working = Path(os.fsdecode((folder / "of").read_bytes()))
            is_gone = is_folder(working.parent) and not os.path.lexists(working)
            if is_gone and (kept := _lock(folder)) is not None:
                remove_folder(folder)
                os.close(kept.lock)


def _list(parent: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError):
        yield from list(parent.iterdir())
