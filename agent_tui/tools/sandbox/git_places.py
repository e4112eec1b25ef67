"""Where git keeps what belongs to a folder: the repository, linked worktrees, controls."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_tui.regular_files import open_regular_file

_OBEYED = ("config", "config.worktree", "hooks", "commondir", "gitdir")
"""Files of a git folder that determine what runs, or where git looks."""

_MOST_WORKTREES = 200
_MOST_BYTES = 1_000_000


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


def git_place(folder: Path) -> GitPlace | None:
    """The repository that contains `folder`; None if there is none, or it is another's.

    Only reads files; git is not run. A ``.git`` that leads elsewhere counts only if that place
    refers back to it: a command could have created it to get write access to another repository.
    """
    for top in (folder, *folder.parents):
        entry = top / ".git"
        if entry.is_dir() and not entry.is_symlink():
            git = entry.resolve()
        elif entry.is_file():
            git = _named(entry, top)
        else:
            continue
        if git is not None and (git / "HEAD").is_file():
            is_own = git == entry or entry in (_named(git / "gitdir", git), _submodule(git))
            return _place(folder, entry, git) if is_own else None
    return None


def _place(folder: Path, entry: Path, git: Path) -> GitPlace:
    is_linked = git.parent.name == "worktrees"
    common = git.parent.parent if is_linked else git
    trees = {tree: _worktree(tree) for tree in _folders(common / "worktrees")}
    # One that lies in the folder may be removed there, so all of it must be removable.
    others = [tree for tree, file in trees.items() if not (file and folder in file.parents)]
    repositories = [common, *dict.fromkeys([git, *others]), *_modules(common)]
    obeyed = [repository / name for repository in repositories for name in _OBEYED]
    return GitPlace(
        top=entry.parent,
        folder=common,
        seen=tuple(file for file in trees.values() if file),
        obeyed=(*obeyed, *((entry,) if entry.is_file() else ())),
    )


def _worktree(tree: Path) -> Path | None:
    """The ``.git`` file of a linked worktree, which names `tree`.

    A command may have created `tree` to get access to another file.
    """
    file = _named(tree / "gitdir", tree)
    return file if file and _named(file, file.parent) == tree.resolve() else None


def _named(file: Path, base: Path) -> Path | None:
    """The path in a git file, relative to `base`; None if it holds none."""
    try:
        named = _text(file).removeprefix("gitdir:").strip()
        return (base / named).resolve(strict=True) if named else None
    except (OSError, RuntimeError, ValueError):
        return None


def _submodule(git: Path) -> Path | None:
    """The ``.git`` file of a submodule, as its git folder names it."""
    try:
        lines = _text(git / "config").splitlines()
    except OSError:
        return None
    named = [line.partition("=")[2] for line in lines if line.split("=")[0].strip() == "worktree"]
    return (git / named[-1].strip()).resolve() / ".git" if named else None


def _text(file: Path) -> str:
    with open_regular_file(file) as opened:
        return opened.read(_MOST_BYTES).decode("utf-8", "surrogateescape")


def _modules(git: Path) -> Iterator[Path]:
    """The git folders of submodules, whose names may have slashes."""
    pending = _folders(git / "modules")
    while pending:
        folder = pending.pop()
        if (folder / "HEAD").is_file():
            yield folder
            yield from _folders(folder / "worktrees")
            pending += _folders(folder / "modules")
        else:
            pending += _folders(folder)


def _folders(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(path for path in folder.iterdir() if path.is_dir())[:_MOST_WORKTREES]
    return []
