"""One walk through the working folders, for everything that the wall must know about them."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from agent_tui.tools.files.protected import is_secret_name
from agent_tui.tools.sandbox.obeyed import who_obeys_entry

MOST_FOLDERS: Final = 4_000
"""The most folders visited; in larger projects the deepest are skipped. Listing 4,000 folders takes
0.3 s the first time, and 15 ms if nothing changed; 300 take 1 ms."""

REBUILT_FOLDERS: Final = frozenset(
    (
        *("node_modules", "bower_components", "site-packages", "__pycache__", "__pypackages__"),
        *(".tox", ".nox", ".venv", "venv", ".mypy_cache", ".ruff_cache"),
        *(".pytest_cache", ".next", ".nuxt", ".turbo", ".gradle", ".terraform", "DerivedData"),
    )
)
"""Folders that builds and package managers fill with thousands of unimportant folders."""

_SKIPPED: Final = REBUILT_FOLDERS | {".git", ".svn"}
_OF_ENVIRONMENT: Final = frozenset(("lib", "lib64", "bin", "include", "share", "Lib", "Scripts"))
_SAME_MOMENT_NS: Final = 50_000_000
"""A folder changed shortly before a look is read again: file systems have coarse clocks."""

_Stamp: TypeAlias = tuple[int, int, int]
"""Device, inode and ``ctime`` of a folder. No program can set the last; a new entry changes it."""


@dataclass(frozen=True, slots=True)
class WalkFindings:
    """What a walk found, as absolute paths.

    Args:
        obeyed: The uppermost files and folders that outside programs follow, and which program.
        gits: Each ``.git``, and folders that are themselves git folders.
        secrets: Files whose names suggest keys.
    """

    obeyed: dict[Path, str] = field(default_factory=dict[Path, str])
    gits: list[Path] = field(default_factory=list[Path])
    secrets: list[Path] = field(default_factory=list[Path])


@dataclass(frozen=True, slots=True)
class _Folder:
    stamp: _Stamp
    is_settled: bool
    folders: tuple[str, ...]
    obeyed: tuple[tuple[str, str], ...]
    gits: tuple[str, ...]
    secrets: tuple[str, ...]


class ProjectWalk:
    """Walks through `roots`, and remembers the entries of unchanged folders.

    Folders nearest to a root come first, and those with findings before: a large number of new
    folders does not push them out. Links are not followed.

    Attributes:
        first: The folders with findings at the last look.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(dict.fromkeys(root.resolve() for root in roots))
        self._known: dict[str, _Folder] = {}
        self.first: tuple[str, ...] = ()

    def look(self) -> WalkFindings:
        """Everything that exists now. Blocking."""
        found, seen, first = WalkFindings(), dict[str, _Folder](), list[str]()
        for path, folder in self._folders():
            seen[path] = folder
            if folder.obeyed or folder.gits or folder.secrets:
                first.append(path)
                here = Path(path)
                found.obeyed.update((here / name, who) for name, who in folder.obeyed)
                found.gits.extend(here / name for name in folder.gits)
                found.secrets.extend(here / name for name in folder.secrets)
        self._known, self.first = seen, tuple(first)
        return found

    def _folders(self) -> Iterator[tuple[str, _Folder]]:
        pending = list(map(os.fspath, self.roots))
        pending += [path for path in self.first if path not in pending and self._holds(path)]
        listed = set(pending)
        for path in pending:
            try:
                folder = self._read(path)
            except OSError:
                continue
            yield path, folder
            for name in folder.folders[: MOST_FOLDERS - len(pending)]:
                if (below := f"{path}/{name}") not in listed:
                    pending.append(below)

    def _holds(self, path: str) -> bool:
        return os.path.realpath(path) == path and any(
            root in Path(path).parents for root in self.roots
        )

    def _read(self, path: str) -> _Folder:
        began_ns = time.time_ns()
        status = os.lstat(path)
        stamp = status.st_dev, status.st_ino, status.st_ctime_ns
        known = self._known.get(path)
        if known is not None and known.is_settled and known.stamp == stamp:
            return known
        with os.scandir(path) as entries:
            here = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        is_settled = status.st_ctime_ns < began_ns - _SAME_MOMENT_NS
        return _sort_entries(path.rpartition("/")[2], here, stamp, is_settled=is_settled)


def _sort_entries(
    folder: str, here: dict[str, bool], stamp: _Stamp, *, is_settled: bool
) -> _Folder:
    obeyed = {name: who for name in sorted(here) if (who := who_obeys_entry(folder, name))}
    gits = [name for name in here if name.lower() == ".git"]
    # Git accepts links for these folders, and searches where a `commondir` leads.
    if "HEAD" in here and ({"objects", "refs"} <= here.keys() or "commondir" in here):
        gits.append(".")
    skipped = _OF_ENVIRONMENT if "pyvenv.cfg" in here else frozenset[str]()
    return _Folder(
        stamp,
        is_settled,
        tuple(
            name
            for name in sorted(here)
            if here[name] and not (name in _SKIPPED or name in skipped or name in obeyed)
        ),
        tuple(obeyed.items()),
        tuple(gits),
        tuple(name for name in sorted(here) if not here[name] and is_secret_name(name)),
    )
