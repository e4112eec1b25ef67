"""The files that git's settings name: further settings, hooks and programs.

All of it is found without running git.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import git_entry, is_file, real_path
from agent_tui.tools.files.python_modules import compiled_name
from agent_tui.tools.git.places import tops_of, work_trees_of
from agent_tui.tools.git.settings import NamedKind, find_named_paths
from agent_tui.tools.git.user_settings import (
    find_programs,
    names_in,
    read_user_settings,
    user_files,
)

HOOK_NAME: Final = re.compile(r"update|(?!packed-refs$)[a-z0-9]+(?:-[a-z0-9]+)+")
"""How hooks are named. A folder of hooks that is around the repository has other files, too."""


def included_settings(git: Path) -> Iterator[Path]:
    """The files in the git folder `git` that its settings include."""
    named = (
        real_path(path) for path, kind in find_named(git, (), git / ".git") if kind == "config"
    )
    return (path for path in named if path.is_relative_to(real_path(git)))


def is_followed(path: Path, home: Path | None) -> bool:
    """Whether git runs the file at `path`, or reads it as settings, because settings say so.

    Args:
        path: A file that may not exist, links followed.
        home: The user's home folder, with their settings; None if there is none.
    """
    users = read_user_settings(user_files(home), home)
    if users.follows(path):
        return True
    entry = git_entry(path.parent)
    paths = {path, Path(compiled_name(os.fspath(path)) or path)}
    programs = users.programs_in(() if entry is None else tops_of(entry))
    if not paths.isdisjoint(map(real_path, programs)):
        return True
    if entry is None:
        return False
    named = {
        each
        for git, trees in work_trees_of(entry)
        for hooks in (users.hooks or ("",))
        for each in find_named(git, trees, entry, hooks)
    }
    return any(
        path.parent == place and HOOK_NAME.fullmatch(path.name) is not None
        if kind == "hook" and entry.is_relative_to(place)
        else place in paths or (kind == "hook" and place in path.parents)
        for place, kind in ((Path(os.path.realpath(each)), kind) for each, kind in named)
    )


def find_named(
    git: Path, trees: Iterable[Path], entry: Path, hooks_path: str = ""
) -> Iterator[tuple[Path, NamedKind]]:
    """What the settings of `git` name, also in several steps, for each of its work trees.

    That is further settings, hooks folders and programs in the work trees, which may not exist.
    Links are not followed.

    Args:
        git: The git folder.
        trees: The work trees that are named for it.
        entry: The ``.git`` that it is found by.
        hooks_path: As in `controls_of`. Hooks run in the work tree, or in the git folder.
    """
    tops = dict.fromkeys((entry.parent, *map(real_path, trees)))
    for top in (entry, *tops) if hooks_path else ():
        yield top / hooks_path, "hook"
    pending = [git / "config", git / "config.worktree"]
    seen = set(pending)
    for config in pending:
        for value, kind in find_named_paths(config):
            if kind == "program":
                names = names_in(value, None)
                for path in chain.from_iterable(find_programs(top, names) for top in tops):
                    yield path, "program"
            if kind not in ("hook", "config"):
                continue
            for around in (config.parent,) if kind == "config" else tops:
                with suppress(OSError, RuntimeError, ValueError):
                    path = around / Path(value).expanduser()
                    real = real_path(path)
                    if is_file(real) == (kind == "config") and real not in seen:
                        seen.add(real)
                        pending += [real] if kind == "config" else []
                        yield path, kind
