"""What commands inside the wall see and may change: pure data, the same for each backend."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.safe_paths import is_folder, real_path
from agent_tui.tools.git.places import git_place

Backend: TypeAlias = Literal["bubblewrap", "landlock", "none"]


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """What a wall allows. All paths exist, are absolute and contain no links.

    The deeper path decides: a writable folder in a readable one can be written, a hidden file in a
    writable folder is hidden.

    Args:
        workspace: Where commands start.
        writable: The working folders (the workspace first), their git folders, the user's caches.
        readable: What exists of hidden places: toolchains, this program.
        hidden: Files and folders that cannot be read.
        read_only: Files and folders in writable ones that cannot be changed.
        home: The user's home folder, or the system's root if there is none. Paths in it that are
            not named above do not exist inside.
        home_stand_in: The folder that replaces `home`, with the settings of git, pip and npm that
            commands need.
        scratch: Replaces ``/tmp``.
        gate: Folder of the network gate's sockets, at the same path inside, writable.
        is_read_only: Nothing in `writable` can be written (plan mode).
        copies: Folders in writable ones, and the copy that replaces each.
        copies_folder: Where the copies are, at the same path inside, read-only.
        caches: Folders of package managers in `home`, and our own folder that replaces each.
        links: Links in hidden folders, and where each leads.
        beside: The hidden files that are searched for again before each command.
        versions: Hidden files, and the file of ours that is shown in place of each.
    """

    workspace: Path
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    read_only: tuple[Path, ...]
    home: Path
    home_stand_in: Path
    scratch: Path
    gate: Path
    is_read_only: bool = False
    copies: tuple[tuple[Path, Path], ...] = ()
    copies_folder: Path | None = None
    caches: tuple[tuple[Path, Path], ...] = ()
    links: tuple[tuple[Path, str], ...] = ()
    beside: tuple[Path, ...] = ()
    versions: tuple[tuple[Path, Path], ...] = ()


@dataclass(frozen=True, slots=True)
class WallFolders:
    """The folders of one wall that belong to this program; see `SandboxPlan` for each."""

    home_stand_in: Path
    scratch: Path
    gate: Path


@dataclass(frozen=True, slots=True)
class Border:
    """What all walls of the program share: the homes, caches and secrets around them.

    Args:
        home: The user's home folder.
        caches: Folders in it that commands may write, and what they write there: the same folder,
            or one of this program's own.
        hidden: What no command may read: this program's folders, secrets of the machine, and places
            of which only `readable` folders exist.
    """

    home: Path
    caches: tuple[tuple[Path, Path], ...] = ()
    hidden: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Covers:
    """What is covered in the working folders, besides what git follows.

    Args:
        read_only: What cannot be changed inside.
        copies: Folders, and the copy that replaces each inside.
        copies_folder: Where the copies are.
        hidden: What cannot be read.
        sockets: The named sockets there, of which commands reach only those that they made.
        unfollowed: Each ``.git`` that shows no repository: a command may have made it, or nobody
            watches the place that it leads to.
    """

    read_only: tuple[Path, ...] = ()
    copies: tuple[tuple[Path, Path], ...] = ()
    copies_folder: Path | None = None
    hidden: tuple[Path, ...] = ()
    sockets: tuple[Path, ...] = ()
    unfollowed: frozenset[Path] = frozenset()


def plan_for(
    folders: Sequence[Path],
    border: Border,
    own: WallFolders,
    covers: Covers = Covers(),
    *,
    readable: Iterable[Path] = (),
    is_read_only: bool = False,
) -> SandboxPlan:
    """The plan for `folders` on this machine as it is now.

    Missing paths cannot be covered, so a new plan is needed before each command.

    Args:
        folders: The working folders, the workspace first.
        border: What is around them.
        own: The wall's own folders.
        covers: What is covered in `folders`.
        readable: What exists of hidden places.
        is_read_only: For plan mode.
    """
    roots = tuple(dict.fromkeys(real_path(folder) for folder in folders))
    home = real_path(border.home) if border.home.is_dir() else Path(border.home.anchor)
    places = (git for git in map(git_place, roots) if git and git.entry not in covers.unfollowed)
    gits = [git for git in places if not home.is_relative_to(git.top)]
    caches = _present(place for place, folder in border.caches if folder == place)
    seen = _present((*readable, *(place for git in gits for place in (git.top, *git.seen))))
    written = (*roots, *(git.folder for git in gits), *caches)
    writable = tuple(dict.fromkeys(path for path in written if not home.is_relative_to(path)))
    shown = tuple(path for path in seen if not home.is_relative_to(path))
    return SandboxPlan(
        workspace=roots[0],
        writable=writable,
        readable=shown,
        hidden=tuple(
            path
            for path in _present((*border.hidden, *covers.hidden))
            if path not in {*written, home}
        ),
        read_only=_present((*covers.read_only, *(place for git in gits for place in git.obeyed))),
        home=home,
        home_stand_in=real_path(own.home_stand_in),
        scratch=real_path(own.scratch),
        gate=real_path(own.gate),
        is_read_only=is_read_only,
        copies=() if is_read_only else tuple((at, real_path(copy)) for at, copy in covers.copies),
        copies_folder=covers.copies_folder and real_path(covers.copies_folder),
        caches=tuple(_replaced_caches(border, home, {*shown, *writable})),
    )


def _replaced_caches(
    border: Border, home: Path, shown: AbstractSet[Path]
) -> Iterator[tuple[Path, Path]]:
    """See `SandboxPlan.caches`: by their names in `home`, wherever links there lead.

    In a folder that is shown no folder can be created, so only existing ones are replaced.
    """
    for place, folder in border.caches:
        if folder != place and home.name:
            own = real_path(folder)
            named = home / place.relative_to(border.home)
            if shown.isdisjoint(named.parents):
                yield named, own
            elif is_folder(real := real_path(named)):
                yield real, own


def identify(paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """What is at `paths`, by device and inode; without what is missing. Blocking."""
    found: dict[Path, tuple[int, int]] = {}
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            found[path] = status.st_dev, status.st_ino
    return found


def _present(paths: Iterable[Path]) -> tuple[Path, ...]:
    found: set[Path] = set()
    for path in paths:
        with suppress(OSError, RuntimeError):
            found.add(path.resolve(strict=True))
    return tuple(sorted(found))
