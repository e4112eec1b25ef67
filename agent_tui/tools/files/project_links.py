"""Finds where the links in a project lead: programs reach a file by each of its names.

A shell reads ``.envrc``, an editor ``.vscode/tasks.json`` and git ``.git/hooks/pre-commit``, also
if that is a link to a file with a harmless name. So a file is protected as under the names of all
links that lead to it, or to a folder around it.
"""

import os
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from agent_tui.safe_paths import git_entry, places_around, read_link, trace_links
from agent_tui.tools.files.folder_entries import REBUILT_FOLDERS, ListStamp, list_folder
from agent_tui.tools.git.places import are_of_git

_MOST_FOLDERS: Final = 20_000
"""Per 1,000 folders, the first look takes 0.1 s of processor time, later ones 0.01 s."""

_MOST_LINKS: Final = 10_000
_MOST_NAMES: Final = 100
"""Of one file: links that lead to a folder around them make any number."""

_WITHOUT_LINKS: Final = frozenset(("objects", "refs", "logs", "rr-cache", "lfs", "annex"))
"""Folders of a git folder in which git follows nothing by its name."""


@dataclass(frozen=True, slots=True)
class ProjectNames:
    """The further names of files in a project.

    Args:
        links: The links that lead to each file or folder, which need not exist.
    """

    links: Mapping[Path, tuple[Path, ...]]

    def find_others(self, path: Path) -> list[Path]:
        """The other names of the absolute `path`, by the links to it and to folders around it."""
        names, used = [path], [frozenset[Path]()]
        for name, before in zip(names, used, strict=True):  # both grow meanwhile
            for place in places_around(name) if self.links else ():
                for link in self.links.get(place, ()):
                    other = link / name.relative_to(place)
                    if link not in before and other not in names and len(names) <= _MOST_NAMES:
                        names.append(other)
                        used.append(before | {link})
        return names[1:]


class _Folder(NamedTuple):
    """A folder as it was read: the folders in it to look into, and its links with their texts."""

    stamp: ListStamp
    below: tuple[str, ...]
    links: tuple[tuple[str, str], ...]


class ProjectLinks:
    """Finds the links in working folders, and in the repository around each; safe in threads.

    Folders nearest to a root come first. What builds fill is left out, links are not followed, and
    unchanged folders are not read again.

    Args:
        roots: The working folders, with links resolved.
        home: The user's home folder: a repository around it is not looked into.
    """

    def __init__(self, roots: Iterable[Path], home: Path | None = None) -> None:
        self._roots = tuple(roots)
        self._home = home
        self._turn = threading.Lock()
        self._known: dict[str, _Folder] = {}
        self._names = ProjectNames({})

    def look(self) -> ProjectNames:
        """The names that links give now. Blocking."""
        with self._turn:
            seen = dict(self._visit())
            if seen != self._known:
                self._known = seen
                links = (Path(link) for folder in seen.values() for link, _ in folder.links)
                self._names = ProjectNames(self._trace(islice(links, _MOST_LINKS)))
            return self._names

    def _visit(self) -> Iterator[tuple[str, _Folder]]:
        """Each folder that is looked into, read again if it has changed."""
        pending = list(dict.fromkeys(map(os.fspath, self._tops())))
        reached = set(pending)
        for path in pending:  # it grows meanwhile
            with suppress(OSError):
                folder = self._known.get(path)
                if folder is None or folder.stamp.differs(os.lstat(path)):
                    folder = _read(path)
                yield path, folder
                new = [below for below in folder.below if below not in reached]
                pending += new[: max(0, _MOST_FOLDERS - len(pending))]
                reached.update(new)

    def _tops(self) -> Iterator[Path]:
        for root in self._roots:
            yield root
            if (entry := git_entry(root)) is not None:
                is_around_home = self._home is not None and self._home.is_relative_to(entry.parent)
                yield root if is_around_home else entry.parent

    def _trace(self, links: Iterable[Path]) -> dict[Path, tuple[Path, ...]]:
        found = dict[Path, tuple[Path, ...]]()
        for link in links:
            target, _ = trace_links(link)
            if not any(root.is_relative_to(target) for root in self._roots):
                found[target] = (*found.get(target, ()), link)
        return found


def _read(path: str) -> _Folder:
    stamp, entries = list_folder(path)
    names = {entry.name for entry in entries}
    is_git = path.endswith("/.git") or are_of_git(names)
    skipped = _WITHOUT_LINKS if is_git else REBUILT_FOLDERS
    folders = (entry.path for entry in entries if _is_looked_into(entry, skipped))
    links = ((entry.path, read_link(Path(entry))) for entry in entries if entry.is_symlink())
    return _Folder(stamp, tuple(sorted(folders)), tuple(sorted(links)))


def _is_looked_into(entry: os.DirEntry[str], skipped: Collection[str]) -> bool:
    return entry.name not in skipped and entry.is_dir(follow_symlinks=False)
