"""What in the working folders is the user's settings.

Dotfiles are often kept in a repository, and ``~/.bashrc`` is a link into it. Whoever changes such a
file determines what the next shell runs. The same holds for what variables name, and for all that
is in a hidden folder of the home folder: programs keep there what they read when they start, and no
list knows all of them.
"""

import base64
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from agent_tui import paths
from agent_tui.safe_paths import git_entry, is_file, real_path, trace_links
from agent_tui.tools.files.environments import (
    VENV_SETTINGS,
    is_active,
    is_virtual_environment,
    may_become_environment,
)
from agent_tui.tools.git.user_settings import names_in

_CONFIG: Final = ".config"
_CACHE: Final = ".cache"
_PROJECT_HOMES: Final = frozenset(("src", "worktrees"))
"""Folders with repositories, also in a hidden one: ``~/.local/src``, ``~/.codex/worktrees``."""

_NAMING: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "GNUPGHOME", "ZDOTDIR"), ("",)),
    **dict.fromkeys(("DOCKER_CONFIG", "KUBECONFIG", "BASH_ENV", "ENV", "INPUTRC"), ("",)),
    **dict.fromkeys(("PYTHONSTARTUP", "PIP_CONFIG_FILE", "NPM_CONFIG_USERCONFIG"), ("",)),
    "GIT_TEMPLATE_DIR": ("",),
    "CARGO_HOME": ("config.toml", "config", "env", "bin"),
    "GOPATH": ("bin",),
}
"""The variables with which users move settings, as the manual of each program says, and what
programs follow there; all of it, if that is empty. It need not exist."""

_BETWEEN_PATHS: Final = re.compile(r"[\s:;,='\"]+")
_LOCATED: Final = ("/", "./", "../")
"""How a name begins that is no word by chance. A relative one counts in each working folder."""

_LAST_PROGRAM: Final = "_"
"""The variable in which a shell puts the program that it starts: not a setting."""

_CONFIG_DEPTH: Final = 3
_DEPTH: Final = 2
"""In other hidden folders: ``~/.vim/vimrc``, ``~/.local/bin/deploy``."""

_PROGRAMS: Final = "bin"
"""A visible folder of the home folder that is usually on PATH."""


_MOST_FOLDERS: Final = 5_000
"""Per 1,000 folders, the search takes 20 ms, once."""


def linked_settings(
    folders: Iterable[Path], environ: Mapping[str, str]
) -> Callable[[], Mapping[Path, Path]]:
    """A function that finds what in `folders` is the user's settings, once; see `find_linked`."""
    variables = ((name, part) for name, parts in _NAMING.items() for part in parts)
    named = (Path(environ[name], part) for name, part in variables if environ.get(name))
    own, roots = (paths.user_config_dir(),), tuple(real_path(folder) for folder in folders)
    settings = (*filter(Path.is_absolute, named), *_named_in(_without_direnv(environ), roots))
    return cache(lambda: find_linked(Path.home(), settings, roots, own))


def _named_in(environ: Mapping[str, str], roots: Sequence[Path]) -> Iterator[Path]:
    """The files in `roots` that any variable names, and the folders of ``PATH`` in them.

    Other folders may have all of a project in them. Packages come into environments, so those are
    left out. Settings that would make an environment of another folder are included.
    """
    values = [value for name, value in environ.items() if name != _LAST_PROGRAM]
    words = dict.fromkeys(word for value in values for word in _names_in(value))
    found = (Path(root, word) for word in words for root in roots if word.startswith(_LOCATED))
    files = filter(is_file, found)
    folders = filter(Path.is_absolute, map(Path, environ.get("PATH", "").split(os.pathsep)))
    programs = [folder for folder in folders if not _is_of_packages(folder, environ, roots)]
    doubtful = filter(may_become_environment, programs)
    marks = (folder.parent / VENV_SETTINGS for folder in doubtful)
    for path in map(real_path, (*files, *programs, *marks)):
        if any(root in path.parents for root in roots):
            yield path


def _names_in(value: str) -> Iterator[str]:
    """What in the value of a variable may name a file: all of it, a part, a word of a command."""
    yield value
    yield from _BETWEEN_PATHS.split(value)
    yield from names_in(value, Path.home())
    if value.startswith("|"):  # the form of LESSOPEN, which may go on with a dash
        yield from names_in(value.lstrip("|-"), Path.home())


def _is_of_packages(folder: Path, environ: Mapping[str, str], roots: Sequence[Path]) -> bool:
    """Whether the programs in `folder` come from packages: of npm, Python or conda."""
    around = folder.parent
    is_known = "node_modules" in folder.parts or is_active(around, environ)
    return is_known or is_virtual_environment(around, roots)


def _without_direnv(environ: Mapping[str, str]) -> Mapping[str, str]:
    """`environ` as it was before direnv loaded a project's ``.envrc``: that is no user's setting.

    direnv keeps what it changed (``gzenv.go``, ``env_diff.go``).
    """
    before, now = dict[str, str](), dict[str, str]()
    with suppress(KeyError, TypeError, ValueError, zlib.error):
        diff = json.loads(zlib.decompress(base64.urlsafe_b64decode(environ["DIRENV_DIFF"])))
        before, now = dict(diff["p"]), dict(diff["n"])
    return before | {
        name: value
        for name, value in environ.items()
        if name not in now and not name.startswith("DIRENV_")
    }


def find_linked(
    home: Path, settings: Iterable[Path], roots: Iterable[Path], own: Iterable[Path] = ()
) -> dict[Path, Path]:
    """What programs reach in `roots` through links in the home folder, and one link to each.

    A root itself may be among them, and what does not exist yet. Settings in a root, and a root
    that is all settings, lead to themselves. Blocking.

    Args:
        home: The home folder.
        settings: Further settings, which are not below `home` or deep in it.
        roots: The working folders, with links resolved.
        own: Folders of this program's settings, which are protected if they are in a root.
    """
    inside, settings, found = tuple(roots), tuple(settings), dict[Path, Path]()
    for link in _links_from(home, (*settings, *own), inside):
        place, links = trace_links(link)
        for each in (*links, place):
            if any(each.is_relative_to(root) for root in inside):
                found.setdefault(each, link)
    places = [real_path(path) for path in settings]
    for root in inside:
        is_hidden = _is_hidden_in(real_path(home), root)
        if any(map(root.is_relative_to, places)) or (
            is_hidden and not any(root in path.parents for path in found)
        ):  # what links name is read, and no more
            found[root] = root
        else:
            found |= {path: path for path in places if root in path.parents}
    return found


def _is_hidden_in(home: Path, root: Path) -> bool:
    """Whether `root` is, or is in, a hidden folder of `home` that programs read as they like."""
    if not root.is_relative_to(home):
        return False
    names = root.relative_to(home).parts
    if not names or not names[0].startswith(".") or names[0] == _CACHE:
        return False
    entry = git_entry(root)
    above = () if entry is None else entry.parent.parent.parts[len(home.parts) :]
    return _PROJECT_HOMES.isdisjoint(above)


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
