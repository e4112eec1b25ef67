"""One walk through the working folders, for everything that the wall must know about them."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

from agent_tui.features.sandbox.git_places import READ_IN_TREE
from agent_tui.features.sandbox.git_state import (
    GitState,
    find_gits,
    kind_of,
)
from agent_tui.features.sandbox.named_sockets import is_socket
from agent_tui.features.sandbox.opened_folders import OpenedFolders
from agent_tui.safe_paths import follow_links, is_file, real_path, trace_steps
from agent_tui.tools.files.folder_entries import REBUILT_FOLDERS, ListStamp, list_folder
from agent_tui.tools.files.obeyed import EntryKind, holds_work_trees, who_obeys_entry
from agent_tui.tools.files.protected import (
    SECRET_PAIRS,
    fold_name,
    holds_key,
    is_data_name,
    is_secret_name,
    is_where_keys_are,
    may_hold_key,
)
from agent_tui.tools.files.python_modules import CACHE
from agent_tui.tools.files.tool_tokens import is_settings_with_token

MOST_FOLDERS: Final = 250_000
"""The most folders of the user's that are visited. Per 100,000, the first look takes 3 s of
processor time, later ones 0.3 s, and all of them 50 MB."""

_MOST_DATA: Final = 200
"""In a folder with more files of data, none of them is searched for a key unless it had one."""

_LONGEST_BYTES: Final = 3_000
"""Linux takes paths of up to 4,095 bytes. A program that is in a longer one can still use the files
there by their relative names, but nobody else can look at them."""


@dataclass(frozen=True, slots=True)
class WalkFindings:
    """What a walk found, as absolute paths.

    Args:
        obeyed: The uppermost files and folders that outside programs follow, and which program.
        gits: Each ``.git``, and folders that are themselves git folders.
        secrets: Files that hold keys, as their names say or, if these leave it open, the content.
        closed: The user's folders that nobody can enter or list. A command could open them, so the
            wall hides them.
        irregular: What in git folders is not what git keeps there (see `GitState`), pipes in place
            of the files of a project that git reads, and folders with paths too long for looking
            into them.
        shared: The files there that have other names, too, each with what identifies it.
        kept: See `GitFindings`.
        ways: Links to what commands write and nobody searches: what is in another place, or in
            `REBUILT_FOLDERS`.
        sockets: The named sockets there.
    """

    obeyed: dict[Path, str] = field(default_factory=dict[Path, str])
    gits: list[Path] = field(default_factory=list[Path])
    secrets: list[Path] = field(default_factory=list[Path])
    closed: list[Path] = field(default_factory=list[Path])
    irregular: list[Path] = field(default_factory=list[Path])
    shared: dict[Path, str] = field(default_factory=dict[Path, str])
    kept: list[Path] = field(default_factory=list[Path])
    ways: list[Path] = field(default_factory=list[Path])
    sockets: list[Path] = field(default_factory=list[Path])


_Found: TypeAlias = tuple[
    dict[Path, str], list[Path], list[Path], list[Path], list[Path], list[Path], list[Path]
]


@dataclass(frozen=True, slots=True)
class _Folder:
    """One folder, as it was read.

    Args:
        stamp: Of its list.
        below: The folders in it that are visited.
        found: What is in it.
        is_obeyed: Whether it is, or is in, a folder that outside programs follow.
        is_rebuilt: Whether it is one of `REBUILT_FOLDERS`, or in one.
    """

    stamp: ListStamp
    below: tuple[str, ...]
    found: _Found | None
    is_obeyed: bool
    is_rebuilt: bool


class ProjectWalk:
    """Walks through `roots`, and remembers the entries of unchanged folders.

    Folders nearest to a root come first, those with findings before, and what builds fill comes
    last. The first look leaves out what is beyond the limit; later ones visit all that is new,
    however much a command made. Links are not followed. What cannot be listed later, but is the
    user's, gets the mode that allows it. Where the wall hides no folder, what cannot be listed is
    open during a look, until `close_folders`.

    Attributes:
        first: The folders with findings at the last look.
        left_out: The folders that the first look left out with all that is in them.
        new: The folders that later looks found, until the caller empties it.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        without: Iterable[Path] = (),
        gits: Iterable[Path] = (),
        *,
        opens: bool = True,
        hides: bool = True,
        unchecked: Iterable[str] = (),
        settings: Iterable[Path] = (),
    ) -> None:
        """Create a walk that has seen nothing.

        Args:
            roots: Where it begins.
            without: Folders that it leaves out.
            gits: Each ``.git`` and git folder outside of `roots` that is theirs.
            opens: Whether commands may write there: folders that they closed are opened, and what
                builds fill is searched for repositories.
            hides: Whether the wall hides what is closed at the first look.
            unchecked: What begins the real paths of what commands write elsewhere.
            settings: The `roots` in which programs read settings when they start.
        """
        self._opens = opens
        self._hides = hides
        self._unchecked = tuple(unchecked)
        self._settings = tuple(f"{folder}/" for folder in settings)
        self._gits = tuple(gits)
        self.roots = tuple(dict.fromkeys(real_path(root) for root in roots))
        self._opened = OpenedFolders((*self.roots, *self._gits))
        self._tops = tuple(map(os.fspath, self.roots))
        self._state = GitState((*self.roots, *self._gits))
        self._known: dict[str, _Folder] = {}
        self._read_files: dict[Path, tuple[tuple[int, int], bool]] = {}
        self._keys: set[int] = set()  # the inodes of files that held a key: they may be moved
        self.first: tuple[str, ...] = ()
        self._skipped = set(map(os.fspath, without))
        self.left_out: set[str] = set()
        self._closed: set[tuple[int, int]] = set()
        self.new: set[str] = set()

    @property
    def new_in_gits(self) -> set[str]:
        """The folders in git folders that later looks found, until the caller empties it."""
        return self._state.new

    def look(self) -> WalkFindings:
        """Everything that exists now. Blocking."""
        found, seen, first = WalkFindings(), dict[str, _Folder](), list[str]()
        known, is_first = self._known, not self._known
        pending, rebuilt = [*self._tops, *filter(self._holds, self.first)], list[str]()
        for path in chain(pending, rebuilt):  # both grow meanwhile
            if path in seen:
                continue
            if len(os.fsencode(path)) > _LONGEST_BYTES:
                found.irregular.append(Path(path))
                continue
            folder = known.get(path)
            try:
                status = os.lstat(path)
                if folder is None or folder.stamp.differs(status):
                    self._open(path, status, is_first=is_first)
                    folder = self._read(path, is_obeyed=self._is_obeyed(path, seen))
            except OSError:
                if self._is_closed(path) and not self._is_obeyed(path, seen):
                    found.closed.append(Path(path))
                continue
            seen[path] = folder
            if not is_first and path not in known:
                self.new.add(path)
            further = rebuilt if folder.is_rebuilt else pending
            further += self._without(folder.below)
            if is_first:
                self._leave_out(pending, rebuilt)
            if folder.found is not None:
                first.append(path)
                self._add(found, folder.found)
        found.gits.extend(self._gits)
        self._look_into_gits(found, is_first=is_first)
        self._known, self.first = seen, tuple(first)
        return found

    def _add(self, findings: WalkFindings, found: _Found) -> None:
        """Add what was `found` in a folder."""
        obeyed, gits, secrets, suspects, links, pipes, sockets = found
        findings.obeyed.update(obeyed)
        findings.gits.extend(gits)
        findings.secrets.extend((*secrets, *filter(self._holds_key, suspects)))
        findings.ways.extend(filter(self._is_way, links))
        findings.irregular.extend(pipes)
        findings.sockets.extend(sockets)

    def _holds_key(self, path: Path) -> bool:
        """Whether the file is one with a key by its content, which is read when it has changed."""
        try:
            status = path.lstat()
        except OSError:
            return False
        stamp = (status.st_ino, status.st_ctime_ns)
        if self._read_files.get(path, (None, False))[0] != stamp:
            self._read_files[path] = stamp, holds_key(path)
        if is_key := self._read_files[path][1]:
            self._keys.add(status.st_ino)
        return is_key

    def _was_key(self, path: Path, inode: int) -> bool:
        """Whether the file, or what was at its path, held a key when it was last read."""
        return inode in self._keys or self._read_files.get(path, (None, False))[1]

    def _leave_out(self, pending: list[str], rebuilt: list[str]) -> None:
        """Remove what is beyond the limit, `rebuilt` first."""
        if len(pending) + len(rebuilt) > MOST_FOLDERS:
            kept = max(0, MOST_FOLDERS - len(pending))
            self.left_out.update(rebuilt[kept:], pending[MOST_FOLDERS:])
            del rebuilt[kept:], pending[MOST_FOLDERS:]

    def is_rebuilt(self, folder: Path) -> bool:
        """Whether `folder` is in one of `REBUILT_FOLDERS`, which commands remove as a whole."""
        return self._is_filled(os.fspath(folder.parent))

    def _look_into_gits(self, found: WalkFindings, *, is_first: bool) -> None:
        """Find what git would follow, wait for, or write elsewhere for, in each git folder."""
        found.gits.extend(self._state.find_gitlinks(found.gits))
        for entry in found.gits:
            with suppress(OSError):
                self._open(os.fspath(entry), os.lstat(entry), is_first=is_first)
        opening = partial(self._open, is_first=is_first)
        while (state := self._state.look(found.gits, opening, is_first=is_first)).gits:
            found.gits.extend(state.gits)
        found.secrets.extend(state.keys)
        found.irregular.extend(state.irregular)
        found.obeyed.update(state.obeyed)
        found.shared.update(state.shared)
        found.kept.extend(state.kept)

    def _without(self, folders: tuple[str, ...]) -> Iterable[str]:
        if not (self.left_out or self._skipped):
            return folders
        out = (self.left_out, self._skipped)
        return (folder for folder in folders if not any(folder in each for each in out))

    def _holds(self, path: str) -> bool:
        return follow_links(path) == path and any(root in Path(path).parents for root in self.roots)

    def _open(self, path: str, status: os.stat_result, *, is_first: bool) -> None:
        """Have `path` listed if it is a folder that cannot be, and was not so at the first look."""
        if (
            not self._opens
            or os.geteuid() == 0
            or not stat.S_ISDIR(status.st_mode)
            or status.st_mode & 0o500 == 0o500
        ):
            return
        version = (status.st_ino, status.st_ctime_ns)
        if is_first and self._hides:
            self._closed.add(version)
        if version not in self._closed:
            self._opened.open(Path(path), for_good=self._hides)

    def close_folders(self) -> None:
        """Give the folders that the looks opened for now their modes back. Blocking."""
        self._opened.close()

    def _is_closed(self, path: str) -> bool:
        with suppress(OSError):
            status = os.lstat(path)
            is_users = status.st_uid == os.geteuid() and path not in self._tops
            return is_users and (status.st_ino, status.st_ctime_ns) in self._closed
        return False

    def _is_obeyed(self, path: str, seen: Mapping[str, _Folder]) -> bool:
        """Whether outside programs follow `path`, or a folder around it."""
        around, _, name = path.rpartition("/")
        if path in self._tops or self._is_for_work_trees(around, name, seen):
            return False
        if (folder := seen.get(around)) is not None and folder.is_obeyed:
            return True
        is_entry = bool(self._who_obeys(around, name, "folder"))
        return is_entry or (folder is None and self._is_obeyed(around, seen))

    def _is_for_work_trees(self, around: str, name: str, seen: Mapping[str, _Folder]) -> bool:
        """Whether work trees are in the folder `name` of `around`, which nothing else follows."""
        if around in self._tops or not holds_work_trees(around, name):
            return False
        return not self._is_obeyed(around.rpartition("/")[0], seen)

    def _names_below_root(self, path: str) -> list[str]:
        """The folders that lead to `path`, and the nearest root: that one may be anywhere."""
        around = (top for top in self._tops if f"{path}/".startswith(f"{top}/"))
        root = max(around, key=len, default="")
        return path[len(root) + 1 :].split("/")

    def _read(self, path: str, *, is_obeyed: bool) -> _Folder:
        stamp, entries = list_folder(path)
        here = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        gits = [] if is_obeyed else list(find_gits(Path(path), here))
        names = self._names_below_root(path)
        is_rebuilt = not REBUILT_FOLDERS.isdisjoint(names)
        pipes = [] if is_obeyed else [Path(entry) for entry in entries if _holds_git_up(entry)]
        sockets = [Path(entry) for entry in entries if is_socket(entry)]
        if is_rebuilt and names[-1] not in REBUILT_FOLDERS:
            folders = tuple(f"{path}/{name}" for name in here if here[name] and name != ".git")
            found: _Found = ({}, gits, [], [], [], pipes, sockets)
            return _Folder(stamp, folders, found if any(found) else None, is_obeyed, is_rebuilt)
        below = [fold_name(name) for name in names]
        has_keys = is_where_keys_are(below)
        secrets = [
            Path(path, name)
            for name in sorted(here)
            if not here[name]
            and (has_keys or is_secret_name(name) or (below[-1], name.lower()) in SECRET_PAIRS)
        ]
        names = [name for name in sorted(here) if not here[name]]
        files = [] if is_rebuilt else [Path(path, name) for name in names]
        suspects = [file for file in files if may_hold_key(file.name) and file not in secrets]
        known = {*secrets, *suspects}
        data = [file for file in files if is_data_name(file.name) and file not in known]
        if len(data) > _MOST_DATA:
            inodes = {entry.name: entry.inode() for entry in entries}
            data = [file for file in data if self._was_key(file, inodes[file.name])]
        suspects += filter(self._holds_key, data)
        settings = [Path(path, "pip.conf")] if "pip.conf" in here else []
        secrets += (each for each in settings if is_settings_with_token(each, is_worked_in=True))
        obeyed: dict[Path, str] = {}
        is_of_project = not is_rebuilt or self._is_cache_of_project(path)
        if not is_obeyed and is_of_project:
            whose = {each.name: self._who_obeys(path, each.name, kind_of(each)) for each in entries}
            obeyed = {Path(path, name): who for name, who in sorted(whose.items()) if who}
        is_searched = self._opens and not is_rebuilt
        links = [Path(entry) for entry in entries if is_searched and entry.is_symlink()]
        found = (obeyed, gits, secrets, suspects, links, pipes, sockets)
        is_last = is_rebuilt and (is_obeyed or not self._opens)
        skipped = set(here) if is_last else {".git"}
        below = (name for name in sorted(here) if here[name] and name not in skipped)
        folders = tuple(f"{path}/{name}" for name in below)
        return _Folder(stamp, folders, found if any(found) else None, is_obeyed, is_rebuilt)

    def _is_cache_of_project(self, path: str) -> bool:
        """Whether Python keeps there what it compiled of files that are followed by their names."""
        around, _, name = path.rpartition("/")
        return name == CACHE and not self._is_filled(around)

    def _who_obeys(self, folder: str, name: str, kind: EntryKind) -> str:
        at_start = f"{folder}/".startswith(self._settings)
        return who_obeys_entry(folder, name, kind, at_start=at_start)

    def _is_way(self, link: Path) -> bool:
        """Whether a link leads to, or through, a folder that commands write and nobody searches.

        That depends on all that is on the way there, also on what lies beyond such a folder: a
        command in another project can change where the way goes on. Of several links, it is the
        last that is in what is searched: one with a name of `REBUILT_FOLDERS` is not.
        """
        steps = list(trace_steps(link))
        target = steps[-1][0]
        out = next((n for n, (step, _) in enumerate(steps) if self._is_unchecked(step)), None)
        if out is None and self._is_searched(os.fspath(target)):
            return False
        links = (step for step, text in steps[:out] if text)
        if [each for each in links if self._is_searched(os.fspath(each))][-1:] != [link]:
            return False
        is_filled = any(map(target.is_relative_to, self.roots)) and not is_file(target)
        return is_filled or out is not None

    def _is_unchecked(self, path: Path) -> bool:
        return f"{path}/".startswith(self._unchecked)

    def _is_searched(self, path: str) -> bool:
        is_inside = f"{path}/".startswith(tuple(f"{top}/" for top in self._tops))
        return is_inside and not self._is_filled(path)

    def _is_filled(self, path: str) -> bool:
        """Whether `path` is one of `REBUILT_FOLDERS`, or in one."""
        return not REBUILT_FOLDERS.isdisjoint(self._names_below_root(path))


def _holds_git_up(entry: os.DirEntry[str]) -> bool:
    """Whether it is a pipe that git opens and waits for, in a command such as ``git status``."""
    if entry.name not in READ_IN_TREE or entry.is_file() or entry.is_dir():
        return False
    with suppress(OSError):
        return stat.S_ISFIFO(entry.stat(follow_symlinks=False).st_mode)
    return False
