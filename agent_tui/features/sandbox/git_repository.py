"""Finds what git follows in a repository, without running git."""

import os
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain, product
from pathlib import Path
from typing import Final

from agent_tui.features.sandbox.git_controls import GRAFTS, STEP_LINES
from agent_tui.features.sandbox.git_places import ALTERNATES, READ_IN_TREE, find_stores
from agent_tui.features.sandbox.git_replacements import find_replacements
from agent_tui.safe_paths import is_folder, is_link, real_path, trace_links
from agent_tui.tools.files.folder_entries import entries_in
from agent_tui.tools.git.named_files import HOOK_NAME, find_named
from agent_tui.tools.git.places import (
    OBEYED,
    REMOTES,
    SETTINGS_FILES,
    is_linked_tree,
    work_trees_of,
)
from agent_tui.tools.git.settings import ControlKind, NamedKind, read_bytes

_HEAD: Final = "HEAD"
_FILES: Final[Mapping[str, ControlKind]] = {
    **dict(SETTINGS_FILES),
    **dict.fromkeys(STEP_LINES, "step"),
    **dict.fromkeys(GRAFTS, "graft"),
    **dict.fromkeys(ALTERNATES, "alternates"),
    _HEAD: "head",
}
_RESTORED: Final[Mapping[str, ControlKind]] = {"config": "config", _HEAD: "head"}


class GitRepository:
    """The repository that a ``.git`` leads to. Its folders and settings are read once.

    Args:
        entry: The ``.git``, or a git folder without a work tree.
        hooks_path: The hooks folder that the user's own settings name for it; empty for none.
    """

    def __init__(self, entry: Path, hooks_path: str = "") -> None:
        self.entry = entry
        self._hooks_path = hooks_path

    @cached_property
    def _trees(self) -> list[tuple[Path, list[Path]]]:
        return list(work_trees_of(self.entry))

    @cached_property
    def _named(self) -> dict[Path, list[tuple[Path, NamedKind]]]:
        """What the settings in each git folder name, links not followed."""
        named = partial(find_named, entry=self.entry, hooks_path=self._hooks_path)
        return {git: list(named(git, trees)) for git, trees in self._trees}

    @cached_property
    def is_linked(self) -> bool:
        """Whether it is a work tree that git added, and can remove."""
        return is_linked_tree(self.entry)

    @property
    def folders(self) -> Iterator[Path]:
        """Its git folders: its own, those of its work trees and submodules."""
        return (git for git, _ in self._trees)

    @property
    def tops(self) -> Iterable[Path]:
        """Each work tree that git may use for it: the folder around it, and what it names."""
        named = chain.from_iterable(trees for _, trees in self._trees)
        return dict.fromkeys((self.entry.parent, *map(real_path, named)))

    def find_controls(self) -> Iterator[tuple[Path, ControlKind]]:
        """The existing files that git follows."""
        if is_link(self.entry) or not is_folder(self.entry):
            yield self.entry, "entry"
        for top, name in product(self.tops, READ_IN_TREE):
            if os.path.lexists(top / name):
                yield top / name, "data"
        for git, trees in self._trees:
            yield from _controls_in(git)
            for path, kind in self._named[git]:
                if kind == "config":
                    yield real_path(path), "config"
                elif kind == "hook":
                    for hook in _hooks_in(real_path(path), self.entry):
                        yield hook, "hook"
            # What git writes there would get elsewhere.
            for link in chain.from_iterable(trace_links(tree)[1] for tree in trees):
                yield link, "irregular"

    @cached_property
    def covers(self) -> list[Path]:
        """The files that git follows and only the user changes, as settings name them.

        Without those of linked worktrees: ``git worktree remove`` deletes them.
        """
        return list(self._find_covers())

    def _find_covers(self) -> Iterator[Path]:
        if not (is_folder(self.entry) or is_link(self.entry) or self.is_linked):
            yield self.entry
        for git, named in self._named.items():
            if git.parent.name != "worktrees":
                yield from (git / name for name in OBEYED if os.path.lexists(git / name))
                for path, kind in named:
                    yield from self._hooks_place(path) if kind == "hook" else [path]

    def _hooks_place(self, folder: Path) -> Iterable[Path]:
        """A folder of hooks, or the hooks in one that is around the repository."""
        if self.entry.is_relative_to(real := Path(os.path.realpath(folder))):
            return _hooks_in(real, self.entry)
        return [folder]

    def find_named_in_tree(self) -> Iterator[Path]:
        """What of `covers` lies in a work tree: hooks folders, and included settings.

        Commits can have these, so a checkout must be able to change them.
        """
        own = {self.entry, *self.folders}
        for path in self.covers:
            real = Path(os.path.realpath(path))
            if ".git" not in real.parts and own.isdisjoint((real, *real.parents)):
                yield path


def _links_to_stores(git: Path) -> Iterator[Path]:
    """The links on the way to other folders with objects, without each ``.git``: an "entry".

    None if the list of folders cannot be read, which git cannot either.
    """
    alternates = git / ALTERNATES[0]
    with suppress(OSError, ValueError):
        for store in find_stores(alternates, read_bytes(alternates).split(b"\n")):
            yield from (link for link in trace_links(store)[1] if link.name != ".git")


def restored_among(
    paths: Iterable[Path], gits: AbstractSet[Path]
) -> Iterator[tuple[Path, ControlKind]]:
    """Which of `paths` are hooks, settings or HEAD in the folders `gits`, or lead to a git folder.

    They need not exist.
    """
    for path in paths:
        if path.name == ".git":
            yield path, "entry"
        elif path.parent in gits and (kind := _RESTORED.get(path.name)) is not None:
            yield path, kind
        elif any(git / "hooks" in path.parents for git in gits & set(path.parents)):
            yield path, "hook"


def _controls_in(git: Path) -> Iterator[tuple[Path, ControlKind]]:
    hooks = git / "hooks"
    for hook in [hooks] if is_link(hooks) else _hooks_in(hooks, git):
        yield hook, "hook"
    for name in REMOTES:
        remotes = git / name
        for path in [remotes] if is_link(remotes) else map(Path, entries_in(remotes)):
            yield path, "pointer"
    for name, kind in _FILES.items():
        if os.path.lexists(git / name):
            yield git / name, kind
    for path in find_replacements(git):
        yield path, "replacement"
    for link in _links_to_stores(git):  # what git reads there would be elsewhere
        yield link, "irregular"


def _hooks_in(folder: Path, git: Path) -> Iterator[Path]:
    """The hooks in `folder`, and what is in folders there: hooks run it (``pre-commit.d``).

    In one that is around `git`, only what is named as a hook.
    """
    is_around = git.is_relative_to(folder)
    pending = [folder]
    for each in pending:
        for entry in entries_in(each):
            if entry.is_dir(follow_symlinks=False):
                pending += [] if is_around else [Path(entry)]
            elif (
                HOOK_NAME.fullmatch(entry.name) if is_around else not entry.name.endswith(".sample")
            ):
                yield Path(entry)
