"""Look at what git keeps in its folders besides objects, and find what makes it write elsewhere.

All of it is data that git trusts: references, the index, logs, messages, the state of unfinished
work. A command can write any of it, and git outside then follows it. So each file must have one
name only, as git writes some in place, and content that its name promises: a symbolic reference
stays below ``refs/``, an index and a list of conflicts name files of the work tree, the note of a
linked work tree leads to one that commands can write, or that refers back.

Hooks, settings and lists of steps, which run something, are in `git_controls`. What is not of git's
own layout belongs to another program. It may follow what is named like settings or a script, or is
executable: lazygit runs what ``lazygit.yml`` there names. The rest is data, which hooks write at
each commit: tags, databases, journals.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, product
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from agent_tui.features.sandbox.git_index import GitIndexes, names_are_safe
from agent_tui.features.sandbox.git_places import ON_PATH, id_bytes_of, leads_to_work_tree
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_folder
from agent_tui.tools.files.folder_entries import (
    SAME_MOMENT_NS,
    ListStamp,
    entries_in,
    folders_in,
    list_folder,
)
from agent_tui.tools.files.obeyed import EntryKind, who_obeys_entry
from agent_tui.tools.files.protected import fold_name
from agent_tui.tools.git.places import are_of_git, git_folders, repositories_of, tops_of

_OBJECTS: Final = "objects"
_GIT_DATA: Final = frozenset(
    (
        *("branches", "hooks", "info", "logs", "modules", _OBJECTS, "rebase-apply"),
        *("rebase-merge", "refs", "reftable", "remotes", "rr-cache", "sequencer", "subtree-cache"),
        "worktrees",
    )
)
"""The folders that git itself keeps in a git folder (``gitrepository-layout``). Another one may be,
or hold, a work tree."""

_GIT_FILES: Final = re.compile(
    r"[.#]*[A-Z][A-Z_]+(?:\.sw[a-z]|~|#)?|(?:config(?:\.worktree)?|packed-refs|index|shallow)(?:\.new)?"
    r"|(?:(?:next-)?index[.-]|sharedindex[._]|shallow_).+|description|commondir|gitdir|locked|gc\.\w+"
    r"|fsmonitor--daemon(?:\.ipc)?|git-daemon-export-ok|lost-found|ADD_EDIT\.patch"
    r"|addp-hunk-edit\.diff|fast_import_crash_\d+|gitk\.cache"
)
"""What else git keeps there, with what editors put beside a message."""

_STORE: Final = re.compile(r"lfs(?:/.*)?|annex/.+")
"""Folders of other programs with content that git tracks, and notes about it."""

_ENDINGS: Final = (
    "yaml yml toml json jsonc json5 ini cfg conf cnf properties xml plist env kdl ron hcl nix"
    " sh bash zsh fish ksh csh ps1 bat cmd exe dll so dylib jar py pyc pth pl pm rb js mjs cjs ts"
    " lua vim el elc tcl php awk mk groovy kts bzl star desktop service"
)
_FOLLOWED: Final = re.compile(rf".*\.(?:{_ENDINGS.replace(' ', '|')})|.*config|.*rc", re.IGNORECASE)
"""How settings and scripts are named."""

ANOTHER: Final = "the program that keeps it in git's folder"
_KEYS_IN_GIT: Final = ("git-crypt/keys", "annex/creds")
"""Folders with keys in a git folder."""

_NAMES_ARE_DATA: Final = frozenset((_OBJECTS, "refs", "logs", "reftable", "rr-cache"))
"""Folders in which a name, such as that of a branch, says nothing about the file."""

_REFERENCE: Final = re.compile(
    r"refs/.+|(?:[^/]*_)?HEAD|AUTO_MERGE|BISECT_EXPECTED_REV|MERGE_AUTOSTASH|NOTES_MERGE_(?:REF|PARTIAL)"
)
"""The references that git itself writes (``is_root_ref``)."""

_INDEX: Final = re.compile(r"index|sharedindex\..*")
_KEPT_IN: Final = ("", "info")
_MADE_AGAIN: Final = re.compile(rf"{_INDEX.pattern}|gitdir")
_CONFLICTS: Final = "MERGE_RR"
_MOST_BYTES: Final = 4_096

_IsRegular: TypeAlias = Callable[[str], bool]
"""Whether a file holds what its name promises."""


class _Folder(NamedTuple):
    """A folder in a git folder, as it was read.

    Args:
        stamp: Of its list.
        below: The folders in it.
        irregular: The links, pipes and devices in it.
        obeyed: What other programs follow there, and who: Emacs looks around a message that it
            edits, and what is not git's may be settings.
        others: Other files that are not git's. Such a file is followed if it is executable.
        files: The files that git may write in place, and what their content must be.
        git: The git folder that the names count from.
        kept: The files whose content git cannot make again: references, the user's exclusions.
        gits: The git folders here, and each ``.git``.
        is_tree: Whether it is in a work tree, of which only `gits` matters.
    """

    stamp: ListStamp
    below: tuple[str, ...] = ()
    irregular: tuple[Path, ...] = ()
    obeyed: tuple[tuple[Path, str], ...] = ()
    others: tuple[str, ...] = ()
    files: tuple[tuple[str, _IsRegular | None], ...] = ()
    git: str = ""
    kept: tuple[Path, ...] = ()
    gits: tuple[Path, ...] = ()
    is_tree: bool = False


class GitFindings(NamedTuple):
    """What is in git folders besides what git keeps there.

    Args:
        irregular: The links, pipes and devices, the files whose content is not what their names
            say, and the folders `ON_PATH`.
        obeyed: What other programs follow, and who.
        shared: The files with further names, each with what identifies it.
        kept: The files directly in git folders and in ``info`` there that git cannot make again.
        gits: Repositories that are none of the given ones, nor theirs. A link can lead there.
        keys: The files with keys.
    """

    irregular: list[Path]
    obeyed: dict[Path, str]
    shared: dict[Path, str]
    kept: list[Path]
    gits: list[Path]
    keys: list[Path]


class GitState:
    """Looks into the git folders in `places`, and remembers what was regular.

    A file that has not changed since the first look is not read again. Any other is: what is
    written to a mapped file changes its times only once.

    Args:
        places: The working folders, with their git folders.

    Attributes:
        new: The folders that were not there at the look before, until the caller empties it.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = tuple(places)
        self._began_ns = time.time_ns() - SAME_MOMENT_NS
        self._folders: dict[str, _Folder] = {}
        self._files: dict[str, tuple[int, int]] = {}
        self._trees = set[str]()
        self.new = set[str]()
        self._indexes = GitIndexes(self._began_ns)

    def look(
        self,
        entries: Collection[Path],
        open_up: Callable[[str, os.stat_result], None],
        *,
        is_first: bool = False,
    ) -> GitFindings:
        """What is not as git keeps it. Blocking.

        Args:
            entries: Each ``.git``.
            open_up: Called before a folder is read.
            is_first: Whether no command has run yet: the work trees in git folders are the user's.
        """
        seen, files = dict[str, _Folder](), dict[str, tuple[int, int]]()
        irregular, obeyed, shared = list[Path](), dict[Path, str](), dict[Path, str]()
        known, keys = set(entries), dict[Path, None]()
        for entry in entries:
            # The deepest first: names count from the folder of the repository that they are in.
            gits = list(reversed(list(repositories_of(entry))))
            known.update(gits)
            keys |= dict.fromkeys(chain.from_iterable(map(_find_keys, gits)))
            for git in filter(self._is_inside, gits):
                irregular += filter(is_folder, (git / ON_PATH,))
                irregular += [] if leads_to_work_tree(git, self._places) else [git / "gitdir"]
                self._trees.update(_find_trees(git) if is_first else ())
                self._look_below(os.fspath(git), seen, open_up)
        for folder in seen.values():
            irregular += folder.irregular
            obeyed.update(folder.obeyed)
            obeyed.update((Path(path), ANOTHER) for path in folder.others if _is_program(path))
            for path, is_regular in folder.files:
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                if status.st_nlink > 1:
                    shared[Path(path)] = f"shared:{status.st_dev}:{status.st_ino}"
                if is_regular is None:
                    continue
                stamp = status.st_ctime_ns, status.st_ino
                is_known = stamp[0] < self._began_ns and self._files.get(path) == stamp
                if is_known or is_regular(path):
                    files[path] = stamp
                else:
                    irregular.append(Path(path))
        if not is_first:
            self.new.update(seen.keys() - self._folders.keys())
        self._folders, self._files = seen, files
        more = {git: None for folder in seen.values() for git in folder.gits if git not in known}
        kept = [path for folder in seen.values() for path in folder.kept]
        return GitFindings(irregular, obeyed, shared, kept, list(more), list(keys))

    def find_gitlinks(self, entries: Iterable[Path]) -> Iterator[Path]:
        """The ``.git`` of each repository that an index names, wherever it lies. Blocking.

        ``git status`` in the project runs what such a repository's settings name.

        Args:
            entries: Each ``.git`` that is known, whose indexes are read. They are not returned.
        """
        pending = list(entries)
        seen = set(pending)
        for entry in pending:
            git, _ = git_folders(entry) or (entry, entry)
            names = list(self._indexes.gitlinks_of(git / "index", id_bytes_of(git)))
            for top, name in product(tops_of(entry), names) if names else ():
                folder = os.path.realpath(os.fsencode(top) + b"/" + name)
                link = Path(os.fsdecode(folder), ".git")
                if link not in seen and self._is_inside(link) and os.path.lexists(link):
                    seen.add(link)
                    pending.append(link)
                    yield link

    def _is_inside(self, path: Path) -> bool:
        return any(path.is_relative_to(place) for place in self._places)

    def _look_below(
        self, git: str, seen: dict[str, _Folder], open_up: Callable[[str, os.stat_result], None]
    ) -> None:
        pending, trees = [git], set[str]()
        for path in pending:
            if path in seen:
                continue
            folder, is_tree = self._folders.get(path), path in trees
            try:
                status = os.lstat(path)
                was = None if folder is None else (folder.git, folder.is_tree)
                if folder is None or was != (git, is_tree) or folder.stamp.differs(status):
                    open_up(path, status)
                    folder = self._read(path, git, is_tree=is_tree)
            except OSError:
                continue
            seen[path] = folder
            pending += folder.below
            if folder.is_tree:
                trees.update(folder.below)

    def _read(self, path: str, git: str, *, is_tree: bool) -> _Folder:
        """Read a folder in the git folder `git`, or in a work tree that lies there."""
        stamp, entries = list_folder(path)
        gits = tuple(find_gits(Path(path), {entry.name for entry in entries}))
        relative = path[len(git) + 1 :]
        top = relative.partition("/")[0]
        is_gits = not top or top in _GIT_DATA
        is_users = f"{git}/{top}" in self._trees or _STORE.fullmatch(relative) is not None
        has_git = not is_gits and any(entry.name == ".git" for entry in entries)
        if has_git and not (is_tree or is_users):  # a work tree must not hide settings
            return _Folder(stamp, obeyed=((Path(path), ANOTHER),), git=git)
        if is_tree or has_git:
            folders = (entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
            return _Folder(stamp, tuple(folders), git=git, gits=gits, is_tree=True)
        below, irregular, files = list[str](), list[Path](), list[tuple[str, _IsRegular | None]]()
        obeyed, others = list[tuple[Path, str]](), list[str]()
        is_anothers = not is_users and (not top or not is_gits)
        for entry in entries:
            if top not in _NAMES_ARE_DATA and (who := self._who_follows(entry, relative)):
                obeyed.append((Path(entry), who))
            elif entry.is_dir(follow_symlinks=False):
                below.append(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                irregular += [] if _is_harmless(entry) else [Path(entry)]
            elif is_anothers and (top or not _is_gits(entry.name)):
                if _FOLLOWED.fullmatch(entry.name):
                    obeyed.append((Path(entry), ANOTHER))
                else:
                    others.append(entry.path)
            elif is_gits and top != _OBJECTS:
                files.append((entry.path, self._promise(entry.path[len(git) + 1 :])))
        found = tuple(below), tuple(irregular), tuple(obeyed), tuple(others), tuple(files)
        names = (Path(path) for path, _ in files if relative in _KEPT_IN)
        kept = tuple(path for path in names if not _MADE_AGAIN.fullmatch(path.name))
        return _Folder(stamp, *found, git, kept, gits)

    def _who_follows(self, entry: os.DirEntry[str], around: str) -> str:
        """Which program follows an entry of the folder `around` in a git folder.

        The name of a submodule or a work tree says nothing.
        """
        kind, top = kind_of(entry), around.partition("/")[0]
        if top in _GIT_DATA and kind == "folder":
            return ""
        if who := who_obeys_entry(around, entry.name, kind):
            return who
        return ANOTHER if around in _KEYS_IN_GIT else ""

    def _promise(self, name: str) -> _IsRegular | None:
        """What the content of the file `name` in a git folder must be; None for anything."""
        if _REFERENCE.fullmatch(name):
            return _stays_below_refs
        if _INDEX.fullmatch(name):
            return self._has_safe_names
        if name == _CONFLICTS:
            return _has_safe_conflicts
        return None

    def _has_safe_names(self, path: str) -> bool:
        index = Path(path)
        return self._indexes.read(index, id_bytes_of(index.parent)).is_safe


def find_gits(folder: Path, names: Collection[str]) -> Iterator[Path]:
    """Each ``.git`` in `folder`, and the folder itself if git takes it for a git folder.

    Args:
        folder: The folder.
        names: What is in it.
    """
    yield from (folder / name for name in names if fold_name(name) == ".git")
    if are_of_git(names):
        yield folder


def kind_of(entry: os.DirEntry[str]) -> EntryKind:
    """What `who_obeys_entry` is told about an entry."""
    if entry.is_symlink():
        return "link"
    return "folder" if entry.is_dir(follow_symlinks=False) else "file"


def _is_gits(name: str) -> bool:
    """Whether git itself keeps something of this `name` in its folder, or is about to write it."""
    return name in _GIT_DATA or _GIT_FILES.fullmatch(name.removesuffix(".lock")) is not None


def _is_program(path: str) -> bool:
    with suppress(OSError):
        return os.lstat(path).st_mode & 0o111 != 0
    return False


def _find_keys(git: Path) -> Iterator[Path]:
    """The files and links in the folders with keys of a git folder."""
    for name in _KEYS_IN_GIT:
        for entry in entries_in(git / name):
            if not entry.is_dir(follow_symlinks=False):
                yield Path(entry)


def _find_trees(git: Path) -> Iterator[str]:
    """The folders in a git folder that are not git's, and that are work trees or hold some."""
    others = (folder for folder in folders_in(git) if folder.name not in _GIT_DATA)
    for folder in others:
        walk = os.walk(folder) if folder.name not in ("lfs", "annex") else ()
        if any(".git" in (*folders, *files) for _, folders, files in walk):
            yield os.fspath(folder)


def _stays_below_refs(path: str) -> bool:
    """Whether it is no symbolic reference that makes git create or overwrite another file."""
    kind, _, target = _start_of(path).partition(b":")
    parts = target.partition(b"\0")[0].strip().split(b"/")
    return kind != b"ref" or (parts[0] == b"refs" and b".." not in parts)


def _has_safe_conflicts(path: str) -> bool:
    """Whether each part, an id, a tab and a name, names a file of the work tree.

    Git reads these files at the next commit, copies what it finds to ``rr-cache``, and may write.
    """
    try:
        with open_regular_file(Path(path), follow_links=False) as file:
            content = file.read()
    except OSError:
        return True
    parts = content.removesuffix(b"\0").split(b"\0") if content else []
    return names_are_safe([part.partition(b"\t")[2] for part in parts])


def _start_of(path: str) -> bytes:
    """The first bytes of a file; none if it cannot be read, which git cannot either."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(descriptor, _MOST_BYTES)
        finally:
            os.close(descriptor)
    return b""


def _is_harmless(entry: os.DirEntry[str]) -> bool:
    """Whether it is a socket, as git's own monitor has one, or gone.

    So is Emacs' lock of a message that is being written: a link whose name git never writes.
    """
    if entry.name.startswith(".#"):
        return True
    with suppress(OSError):
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    return True
