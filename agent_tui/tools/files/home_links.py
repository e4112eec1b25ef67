"""What in the working folders is the user's settings, as links in the home folder say.

Dotfiles are often kept in a repository, and ``~/.bashrc`` is a link into it. Whoever changes such a
file determines what the next shell runs.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from agent_tui import paths
from agent_tui.safe_paths import trace_links

_CONFIG: Final = ".config"
_CONFIG_DEPTH: Final = 3
_DEPTH: Final = 2
"""In other hidden folders: ``~/.vim/vimrc``, ``~/.local/bin/deploy``."""

_PROGRAMS: Final = "bin"
"""A visible folder of the home folder that is usually on PATH."""

_WITHIN: Final = (
    "Links in the home folder lead to files here: {}{}. Programs outside read them at their start, "
    "so each change needs the approval of the user."
)
_WHOLE: Final = (
    "{} leads to {}. Programs outside read what commands write there. Only changes of files that "
    "agent-tui knows need approval."
)
_SETTINGS: Final = (
    "Programs outside read what commands write in {}. Only changes of files that agent-tui knows "
    "need approval."
)
_MOST_NAMED: Final = 5

_MOST_FOLDERS: Final = 5_000
"""Per 1,000 folders, the search takes 20 ms, once."""


def linked_settings(
    folders: Iterable[Path], environ: Mapping[str, str]
) -> Callable[[], Mapping[Path, Path]]:
    """A function that finds what in `folders` is the user's settings, once; see `find_linked`."""
    named = environ.get("XDG_CONFIG_HOME")
    settings = (paths.user_config_dir(), *((Path(named),) if named else ()))
    roots = tuple(folder.resolve() for folder in folders)
    return cache(lambda: find_linked(Path.home(), settings, roots))


def find_linked(home: Path, settings: Iterable[Path], roots: Iterable[Path]) -> dict[Path, Path]:
    """What programs reach in `roots` through links in the home folder, and one link to each.

    A root itself may be among them, and what does not exist yet. A root in a folder of settings
    leads to itself. Blocking.

    Args:
        home: The home folder.
        settings: Further folders of settings, which are not below `home` or deep in it.
        roots: The working folders, with links resolved.
    """
    inside = tuple(roots)
    places = [path.resolve() for path in (home / _CONFIG, home / ".local/bin", *settings)]
    found = {root: root for root in inside if any(map(root.is_relative_to, places))}
    for link in _links_from(home, settings, inside):
        place, links = trace_links(link)
        for each in (*links, place):
            if any(each.is_relative_to(root) for root in inside):
                found.setdefault(each, link)
    return found


def describe_linked(linked: Mapping[Path, Path], roots: Collection[Path]) -> Iterator[str]:
    """What the user and the model are told about `linked`; see `find_linked`."""
    if within := sorted({link for place, link in linked.items() if place not in roots}):
        links = ", ".join(map(str, within[:_MOST_NAMED]))
        more = f" and {len(within) - _MOST_NAMED} more" if len(within) > _MOST_NAMED else ""
        yield _WITHIN.format(links, more)
    for root, link in linked.items():
        if root in roots:
            yield _SETTINGS.format(root) if link == root else _WHOLE.format(link, root)


def _links_from(home: Path, settings: Iterable[Path], roots: Sequence[Path]) -> Iterator[Path]:
    """The links through which programs find settings, without those in `roots`."""
    pending = [(os.path.realpath(path), _CONFIG_DEPTH) for path in (home / _CONFIG, *settings)]
    for entry in _entries(home):
        if entry.name.startswith(".") or entry.name == _PROGRAMS:
            if entry.is_symlink():
                yield Path(entry.path)
            pending.append((os.path.realpath(entry.path), _DEPTH))
    inside = tuple(f"{root}/" for root in roots)
    seen = set[str]()
    for folder, depth in pending:
        if folder in seen or f"{folder}/".startswith(inside) or len(seen) == _MOST_FOLDERS:
            continue
        seen.add(folder)
        for entry in _entries(folder):
            if is_link := entry.is_symlink():
                yield Path(entry.path)
            if depth > 1 and _is_folder(entry):
                path = os.path.realpath(entry.path) if is_link else entry.path
                pending.append((path, depth - 1))


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir()
    return False
