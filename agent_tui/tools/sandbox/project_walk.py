"""One walk through the folders worked in, for all that the wall has to know of them."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from agent_tui.tools.files.protected import is_secret_name
from agent_tui.tools.sandbox.obeyed import who_obeys_entry

MOST_FOLDERS: Final = 4_000
"""Of a project that has more, those farthest down are not looked into. To list 4,000 folders takes
some 0.3 s the first time, and to see that nothing changed in them 15 ms; 300 take 1 ms."""

_SKIPPED: Final = frozenset(
    (
        *("node_modules", "bower_components", "site-packages", "__pycache__", "__pypackages__"),
        *(".git", ".svn", ".tox", ".nox", ".venv", "venv", ".mypy_cache", ".ruff_cache"),
        *(".pytest_cache", ".next", ".nuxt", ".turbo", ".gradle", ".terraform", "DerivedData"),
    )
)
"""What builds and package managers fill, with thousands of folders that nobody opens."""

_OF_ENVIRONMENT: Final = frozenset(("lib", "lib64", "bin", "include", "share", "Lib", "Scripts"))
_SAME_MOMENT_NS: Final = 50_000_000
"""A folder that changed so shortly before a look is read again: file systems have coarse clocks."""

_Stamp: TypeAlias = tuple[int, int, int]
"""Device, inode and ``ctime`` of a folder. No program sets the last; a new entry changes it."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a walk came by, as absolute paths.

    Args:
        obeyed: The uppermost files and folders that the outside obeys, and who does.
        gits: Each ``.git``, and folders that are themselves what git keeps of a repository.
        secrets: Files whose names speak of keys.
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
    """Walks through `roots`, and remembers what folders held that have not changed since.

    The folders nearest to a root come first, and those that held something before: new ones, if
    there are very many, do not have them left out. Links are not followed.

    Attributes:
        first: The folders that held something at the last look.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(dict.fromkeys(root.resolve() for root in roots))
        self._known: dict[str, _Folder] = {}
        self.first: tuple[str, ...] = ()

    def look(self) -> Found:
        """All there is now. Blocking."""
        found, seen, first = Found(), dict[str, _Folder](), list[str]()
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
        return _sorted_out(path.rpartition("/")[2], here, stamp, is_settled=is_settled)


def _sorted_out(folder: str, here: dict[str, bool], stamp: _Stamp, *, is_settled: bool) -> _Folder:
    obeyed = {name: who for name in sorted(here) if (who := who_obeys_entry(folder, name))}
    gits = [name for name in here if name.lower() == ".git"]
    # Git takes links for these folders, and looks for them where a `commondir` leads.
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
