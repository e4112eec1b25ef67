"""Where git keeps a repository, found without running git."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import is_file, is_folder, places_around, real_path
from agent_tui.tools.files.folder_entries import folders_in
from agent_tui.tools.files.protected import fold_name
from agent_tui.tools.git.settings import (
    WORK_TREE,
    ControlKind,
    find_named_paths,
    read_settings,
    read_text,
)

SETTINGS_FILES: Final[tuple[tuple[str, ControlKind], ...]] = (
    ("config", "config"),
    ("config.worktree", "config"),
    ("commondir", "pointer"),
    ("info/attributes", "attributes"),
)
REMOTES: Final = ("remotes", "branches")
"""Folders with a file for each remote, as before git had settings for them."""


OBEYED: Final = ("hooks", "gitdir", *REMOTES, *(name for name, _ in SETTINGS_FILES))
"""What in a git folder determines what runs, or where git looks."""

_HEAD: Final = "HEAD"
_SHARED: Final = "commondir"
_PARTS: Final = ("objects", "refs")
MARKS: Final = (_HEAD, _SHARED, *_PARTS)
_SUBMODULES: Final = "modules"


def are_of_git(names: Collection[str]) -> bool:
    """Whether git takes a folder with these `names` in it for a git folder.

    Git accepts links for these folders, and searches where a ``commondir`` leads
    (``is_git_directory``).
    """
    return _HEAD in names and (_SHARED in names or all(part in names for part in _PARTS))


def git_folder_around(path: Path, written: Iterable[Path] = ()) -> Path | None:
    """The git folder that `path` is or is in, by its name or by what is in it; None if in none.

    Args:
        path: An absolute path. It counts as existing below a folder.
        written: Other files that are about to be written: a folder is a git folder, too, if these
            and `path` make it one. Blocking.
    """
    new = [os.fspath(each) for each in (path, *written)]
    for folder in places_around(path):
        if fold_name(folder.name) == ".git" or _is_git(os.fspath(folder), new):
            return folder
    return None


def _is_git(folder: str, new: Iterable[str]) -> bool:
    """Whether git takes `folder` for a git folder once the files `new` exist."""
    start = f"{folder}{os.sep}"
    made = {each[len(start) :].partition(os.sep)[0] for each in new if each.startswith(start)}
    made = set(map(fold_name, made))

    def has(name: str) -> bool:
        return fold_name(name) in made or os.path.lexists(start + name)

    return has(_HEAD) and are_of_git(list(filter(has, MARKS)))


def leads_to(pointer: Path, *, follow_links: bool = False) -> Path | None:
    """Where the path in a git file leads; None if it cannot be read, or holds none."""
    try:
        return place_named(pointer, read_text(pointer, follow_links=follow_links))
    except (OSError, ValueError):
        return None


def place_named(pointer: Path, text: str) -> Path | None:
    """Where the git file or link `pointer` leads with this `text`; None if that names nothing.

    Raises:
        ValueError: It cannot be a path.
    """
    named = text.removeprefix("gitdir:").strip()
    return real_path(pointer.parent / named) if named else None


def repositories_of(entry: Path) -> Iterator[Path]:
    """The git folders behind a ``.git``: its own, those of its worktrees and submodules."""
    if (found := git_folders(entry)) is not None:
        yield from _repositories_around(*found)


def git_folders(entry: Path) -> tuple[Path, Path] | None:
    """The git folder behind a ``.git``, and the one with its commits, which work trees share."""
    git = real_path(entry) if is_folder(entry) else leads_to(entry)
    if git is None or not is_folder(git):
        return None
    return git, leads_to(git / "commondir") or git


def work_trees_of(entry: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Each of `repositories_of`, and the work trees that are named for it, links not followed.

    By its settings and those of the linked work trees that share them, and for a submodule by
    ``.gitmodules``. Git runs hooks there, and writes, whether or not a ``.git`` is there now.
    """
    submodules = list(trees_in(entry.parent / ".gitmodules"))
    for git in repositories_of(entry):
        trees = list(submodules if is_submodules(git) else ())
        for folder in (git, *folders_in(git / "worktrees")):
            pointed = leads_to(folder / "gitdir")
            trees += () if pointed is None else (pointed.parent,)
            trees += (*trees_in(folder / "config"), *trees_in(folder / "config.worktree"))
        yield git, trees


def trees_in(settings: Path) -> Iterator[Path]:
    """The work trees that a file with settings names."""
    named = find_named_paths(settings)
    return (settings.parent / value for value, kind in named if kind == "tree")


def tops_of(entry: Path) -> Iterator[Path]:
    """Each work tree that git may use for a ``.git``: the folder around it, and what it names."""
    named = (real_path(tree) for _, trees in work_trees_of(entry) for tree in trees)
    return iter(dict.fromkeys((entry.parent, *named)))


def is_submodules(git: Path) -> bool:
    """Whether a git folder is where git keeps those of submodules."""
    return _SUBMODULES in git.parts


def is_linked_tree(entry: Path) -> bool:
    """Whether this ``.git`` belongs to a work tree that git added, and can remove."""
    found = git_folders(entry) if is_file(entry) else None
    return found is not None and found[0] != found[1]


def _repositories_around(git: Path, common: Path) -> Iterable[Path]:
    worktrees = folders_in(common / "worktrees")
    return dict.fromkeys((git, common, *worktrees, *_submodules_in(common / _SUBMODULES)))


def _submodules_in(folder: Path) -> Iterator[Path]:
    """The git folders below and their worktrees'; the name of a submodule may have slashes."""
    pending = [folder]
    for folder in pending:
        for below in folders_in(folder):
            is_git = os.path.lexists(below / "HEAD")
            if is_git:
                yield from (below, *folders_in(below / "worktrees"))
            pending.append(below / _SUBMODULES if is_git else below)


@dataclass(frozen=True, slots=True)
class GitPlace:
    """A repository that a folder belongs to.

    Args:
        top: The worktree around the folder. It must exist, as git treats missing files as deleted.
        folder: Where commits are stored, shared by all worktrees; commands write it.
        seen: The ``.git`` file of each other worktree: ``git worktree prune`` forgets one without
            it.
        obeyed: What must not change.
    """

    top: Path
    folder: Path
    seen: tuple[Path, ...]
    obeyed: tuple[Path, ...]

    @property
    def entry(self) -> Path:
        """The ``.git`` of the worktree."""
        return self.top / ".git"


def git_place(folder: Path) -> GitPlace | None:
    """The repository that contains `folder`; None if there is none, or it is another's.

    Only reads files; git is not run. A ``.git`` that leads elsewhere counts only if that place
    refers back to it, or can be no other work tree's: a command could have created it to get write
    access to another repository.
    """
    for top in (folder, *folder.parents):
        entry = top / ".git"
        if is_folder(entry):
            git = real_path(entry)
        elif is_file(entry):
            git = leads_to(entry, follow_links=True)
        else:
            continue
        if git is not None and is_file(git / "HEAD"):
            back = leads_to(git / "gitdir", follow_links=True)
            named = (back, submodule_entry(git / "config"))
            is_own = git == entry or entry in named or _stands_apart(git)
            return _place(folder, entry, git) if is_own else None
    return None


def _place(folder: Path, entry: Path, git: Path) -> GitPlace:
    is_linked = git.parent.name == "worktrees" and os.path.lexists(git / "commondir")
    common = git.parent.parent if is_linked else git
    trees = {tree: _worktree(tree) for tree in folders_in(common / "worktrees")}
    # One that lies in the folder may be removed there, so all of it must be removable.
    inside = {tree for tree, file in trees.items() if file and folder in file.parents} - {git}
    repositories = [each for each in _repositories_around(git, common) if each not in inside]
    obeyed = [repository / name for repository in repositories for name in OBEYED]
    return GitPlace(
        top=entry.parent,
        folder=common,
        seen=tuple(file for file in trees.values() if file),
        obeyed=(*obeyed, *((entry,) if is_file(entry) else ())),
    )


def _worktree(tree: Path) -> Path | None:
    """The ``.git`` file of a linked worktree, which names `tree`.

    A command may have created `tree` to get access to another file.
    """
    file = leads_to(tree / "gitdir", follow_links=True)
    return file if file and leads_to(file, follow_links=True) == real_path(tree) else None


def _stands_apart(git: Path) -> bool:
    """Whether `git` has a work tree somewhere that it does not name.

    ``git init --separate-git-dir`` makes such a folder; others move it and leave a link. Without
    those within another repository, and those named ``.git``, which belong to the folder around.
    """
    if ".git" in git.parts or any(os.path.lexists(git / name) for name in ("commondir", "gitdir")):
        return False
    settings = read_settings(git / "config")
    return settings.get("core.bare") == "false" and WORK_TREE not in settings


def submodule_entry(config: Path) -> Path | None:
    """The ``.git`` file of a submodule, as the settings in its git folder name it."""
    return entry_named(config, read_settings(config))


def entry_named(config: Path, settings: Mapping[str | None, str]) -> Path | None:
    """As `submodule_entry`, for a file with these `settings`."""
    with suppress(OSError, RuntimeError, ValueError, KeyError):
        tree = settings[WORK_TREE]
        if not set(tree) & set('"\\#;'):
            return real_path(config.parent / tree) / ".git"
    return None
