"""Which files that git ignores exist nowhere else, and nothing makes again."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from agent_tui.regular_files import open_regular_file, read_regular_file
from agent_tui.tools.files.folder_entries import REBUILT_FOLDERS

_CACHE_MARK: Final = b"Signature: 8a477f597d28d172789f06886806bc55"
"""How a ``CACHEDIR.TAG`` begins, by which a program says that its folder may be deleted:
https://bford.info/cachedir/."""

_MOST_COMPARED_BYTES: Final = 1_000_000


def find_ignored_work(top: Path, main: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the ignored `names` that would be lost with the worktree `top`. Blocking.

    Left out are links, folders that a program marked as its cache or as a Python environment or
    that package managers fill, and files that the main worktree holds with the same content.

    Args:
        top: The top folder of the worktree.
        main: The top folder of the main worktree.
        names: Relative to `top`; those of folders end in a slash.
    """
    known: dict[Path, bool] = {top: False}

    def is_rebuilt(folder: Path) -> bool:
        if folder not in known:
            known[folder] = is_rebuilt(folder.parent) or _is_marked(folder)
        return known[folder]

    def is_work(name: str) -> bool:
        place = top / name
        if place.is_symlink() or is_rebuilt(place if name.endswith("/") else place.parent):
            return False
        return not _is_copy(place, main / name)

    return tuple(name for name in names if is_work(name))


def _is_marked(folder: Path) -> bool:
    if folder.name in REBUILT_FOLDERS or os.path.lexists(folder / "pyvenv.cfg"):
        return True
    try:
        with open_regular_file(folder / "CACHEDIR.TAG") as file:
            return file.read(len(_CACHE_MARK)) == _CACHE_MARK
    except OSError:
        return False


def _is_copy(file: Path, other: Path) -> bool:
    try:
        sizes = {file.stat().st_size, other.stat().st_size}
        if len(sizes) != 1 or max(sizes) > _MOST_COMPARED_BYTES:
            return False
        return read_regular_file(file) == read_regular_file(other)
    except OSError:
        return False
