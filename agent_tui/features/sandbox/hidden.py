"""Files with keys in the working folders, which sandboxed commands do not see."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from agent_tui.features.sandbox.beneath import MOST_BYTES, folder_of, separate
from agent_tui.features.sandbox.change_authors import Author
from agent_tui.features.sandbox.project_walk import ProjectWalk
from agent_tui.features.sandbox.tracked_files import Tracked, TrackedFiles
from agent_tui.regular_files import open_regular_file, read_at
from agent_tui.safe_paths import is_folder, is_link, real_path
from agent_tui.tools.files.protected import is_certificate, is_secret_name
from agent_tui.tools.git.command import object_id
from agent_tui.tools.processes.keeper import ProcessKeeper

_Stamp: TypeAlias = tuple[int, int]
"""Inode and ``ctime``."""

_MOST_COMPARED: Final = 50_000_000
"""Bytes of a file that is compared with git's; longer ones count as changed."""

_UNCLEAR: Final = (
    "{0} appeared or changed while the command ran, which does not name it. It may be the user's, "
    "so commands in the sandbox do not see it. The user can allow it with the rule read({0})"
)
_NOT_CHANGED: Final = (
    "git could not switch {0} to its other version: it has changes of the user, and the sandbox "
    "covers it. Other files may be switched already, and a commit in the same command has the "
    "earlier content of {0}: check git status and git log -p -- {0}. To go back, use git switch - "
    "or git restore. With outside: true, git refuses before it changes anything"
)


class HiddenFiles:
    """Which files of a conversation's folders are hidden: ``.env`` and key files.

    Files that git has with the same content are not hidden: commands can read them anyway, and
    commits would fail. In place of those that the user has changed, commands see what git has.
    What a command created itself stays visible (``cp .env.example .env``, then ``npm start``). Once
    the user changes such a file, it is hidden. While commands run, nothing tells who writes a file:
    it is theirs if they name it, if its folder is new too, or if it holds nothing new.

    Args:
        environ: The environment of commands, for git.
        keeper: Starts git.

    Attributes:
        may_show: Whether a rule of the user shows a file; the caller sets it.
        paths: The files hidden now in working folders.
        sockets_beside: The named sockets that `find_beside` saw.
    """

    def __init__(self, environ: Mapping[str, str], keeper: ProcessKeeper) -> None:
        self.may_show: Callable[[Path], bool] = _shows_none
        self._here = _ComparedWithGit(keeper, environ)
        self._beside = _ComparedWithGit(keeper, environ)
        self._walk_beside = ProjectWalk(())
        self._known: dict[Path, _Stamp] = {}
        self._made: set[Path] = set()
        self._own: set[Path] = set()
        self._names: dict[Path, int] | None = None
        self._running: list[str] = []
        self._notices: list[str] = []
        self._said: set[Path] = set()
        self.paths: tuple[Path, ...] = ()
        self.sockets_beside: tuple[Path, ...] = ()

    def note_command(self, command: str) -> None:
        """Note that a command begins, which may name the files that it writes."""
        self._running.append(command)

    def note_own(self, path: Path) -> None:
        """Note that our own tools write `path`: the model has what is new in it."""
        self._own.add(path)

    def forget_command(self, command: str) -> None:
        """Note that a command has ended, and its files were looked at."""
        self._running.remove(command)

    def take(
        self,
        secrets: Iterable[Path],
        since: Author,
        new_folders: AbstractSet[str] = frozenset(),
    ) -> None:
        """Update from the result of a walk. Blocking.

        Args:
            secrets: `WalkFindings.secrets`.
            since: Who could change files since the last call.
            new_folders: The folders that are new since then.
        """
        is_first = self._names is None  # after a kill, nothing tells what is new
        secrets, by_commands = tuple(secrets), since == "commands" and not is_first
        self._part_from_other_names(secrets, are_users=since == "user")
        now = {path: stamp for path in secrets if (stamp := _stamp(path)) is not None}
        inodes = {inode for path, (inode, _) in self._known.items() if path not in self._made}
        unclear: list[Path] = []
        for path, stamp in now.items():
            was = self._known.get(path)
            if was == stamp or (was is None and by_commands and stamp[0] in inodes):
                continue  # the same, or only moved there
            is_theirs = by_commands and self._is_of_commands(path, new_folders)
            is_theirs = is_theirs or path in self._own
            if by_commands and not is_theirs and (was is None or path in self._made):
                unclear.append(path)
            if is_theirs and (was is None or path in self._made):
                self._made.add(path)
            else:
                self._made.discard(path)
        self._known = now
        self._own.clear()
        self._made.intersection_update(now)
        unseen = (path for path in now if path not in self._made and not self.may_show(path))
        hidden = [path for path in unseen if not _leads_to_no_file(path)]
        shown = dict(self._here.versions)
        self.paths = self._here.find_changed({path: now[path] for path in hidden})
        self._notices += [_UNCLEAR.format(path.name) for path in unclear if path in self.paths]
        if by_commands:
            versions = self._here.versions
            moved = (path for path in shown if versions.get(path, shown[path]) != shown[path])
            self._notices += [_NOT_CHANGED.format(path.name) for path in moved]

    def take_notices(self, printed: str) -> tuple[str, ...]:
        """What the model is told once about files that are hidden from now on, or not changed.

        Args:
            printed: What its command printed. Git goes on if it cannot change a covered file.
        """
        for path in self.versions:
            if re.search(rf"unable to unlink .*{_whole(path.name)}", printed):
                self._notices.append(_NOT_CHANGED.format(path.name))
        notices, self._notices = tuple(dict.fromkeys(self._notices)), []
        return notices

    def _is_of_commands(self, path: Path, new_folders: AbstractSet[str]) -> bool:
        """Whether a running command wrote what is at `path`, or nothing in it is a secret."""
        if os.fspath(path.parent) in new_folders:
            return True
        return any(map(re.compile(_whole(path.name)).search, self._running)) or _is_no_news(path)

    def _part_from_other_names(self, secrets: Iterable[Path], *, are_users: bool) -> None:
        """Give each visible file that got another name a content of its own.

        What the user writes into it later would be readable under the other name. Names that only
        the user can have made stay.
        """
        before, names = self._names, dict[Path, int]()
        for path in secrets:
            with suppress(OSError):
                status = path.lstat()
                names[path] = status.st_nlink
                is_new = before is not None and status.st_nlink > before.get(path, 1)
                is_new = is_new and not are_users and path not in self.paths
                if is_new and stat.S_ISREG(status.st_mode) and separate(path, (path.parent,)):
                    names[path] = 1
        self._names = names

    def search_beside(self, folders: Iterable[Path], working: Iterable[Path]) -> None:
        """Have `find_beside` search `folders` without the `working` folders in them."""
        self._walk_beside = ProjectWalk(tuple(folders), working, opens=False)

    def find_beside(self) -> tuple[Path, ...]:
        """The files with keys in folders that commands can only read. Blocking.

        Without certificates, which programs need.
        """
        found = self._walk_beside.look()
        self.sockets_beside = tuple(found.sockets)
        keys = [path for path in found.secrets if not (self.may_show(path) or is_certificate(path))]
        stamps = {path: stamp for path in keys if (stamp := _stamp(path)) is not None}
        return self._beside.find_changed(stamps)

    @property
    def beside(self) -> tuple[Path, ...]:
        """Where `find_beside` searches."""
        return self._walk_beside.roots

    @property
    def versions(self) -> Mapping[Path, tuple[bytes, int]]:
        """What commands see in place of some hidden files: the content, and the mode."""
        return self._here.versions | self._beside.versions

    def hint(self, command: str, printed: str) -> str:
        """A hint for the model if a failed command met a hidden file, once for each file."""
        text = f"{command}\n{printed}"
        for path in self.paths:
            if _is_named(path, text) and path not in self._said:
                self._said.add(path)
                sees = f"{path.name} exists, but commands in the sandbox cannot see it"
                if path in self.versions:
                    sees = f"commands in the sandbox see {path.name} as it was added to git"
                rule = f"the user can allow it with the rule read({path.name})"
                return f"{sees}, as it may hold keys; {rule}"
        return ""


class _ComparedWithGit:
    """Which files differ from what git has, and what that is; asks only if one has changed."""

    def __init__(self, keeper: ProcessKeeper, environ: Mapping[str, str]) -> None:
        self._tracked = TrackedFiles(keeper, environ)
        self._asked: object = None
        self._changed: tuple[Path, ...] = ()
        self.versions: dict[Path, tuple[bytes, int]] = {}

    def find_changed(self, stamps: Mapping[Path, _Stamp]) -> tuple[Path, ...]:
        """The files without those that git has as they are."""
        tracked = self._tracked.find(stamps)
        if self._asked != (stamps, tracked):
            same = frozenset(_find_same(tracked))
            self._changed = tuple(path for path in stamps if path not in same)
            self.versions = dict(self._read_versions(tracked, tracked.keys() - same))
            self._asked = stamps, tracked
        return self._changed

    def _read_versions(
        self, tracked: Mapping[Path, Tracked], changed: Iterable[Path]
    ) -> Iterator[tuple[Path, tuple[bytes, int]]]:
        for path in changed:
            if stat.S_ISREG(tracked[path].mode) and not is_link(path):
                content = self._tracked.read(path, tracked[path])
                if content is not None:
                    yield path, (content, tracked[path].mode)


def _find_same(tracked: Mapping[Path, Tracked]) -> Iterator[Path]:
    """The files that have the content that git has, which commands may have put into the index."""
    for path, (id, _) in tracked.items():
        with suppress(OSError), open_regular_file(path, follow_links=False) as file:
            if object_id(file.read(_MOST_COMPARED), like=id) == id:
                yield path


def _leads_to_no_file(path: Path) -> bool:
    """Whether `path` leads to a folder, or to the null device, by which people switch it off."""
    return is_folder(path) or real_path(path) == Path(os.devnull)


def _shows_none(_path: Path) -> bool:
    return False


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def _whole(name: str) -> str:
    """A regular expression for `name` where it is not a part of a longer one."""
    return rf"(?<![\w.-]){re.escape(name)}(?![\w.-])"


def _is_named(path: Path, text: str) -> bool:
    """Whether `text` names `path`: by its name alone, or after folders that are those around it."""
    for found in re.finditer(rf"([^\s'\"`=:,;|&()<>]*/)?{_whole(path.name)}", text):
        words = os.path.normpath(found[1] or ".").split("/")
        around = [word for word in words if word.strip(".") and word[0] not in "$~"]
        if list(path.parent.parts[-len(around) :]) == around or not around:
            return True
    return False


def _is_no_news(path: Path) -> bool:
    """Whether `path` is empty or a certificate, or a copy of a file beside it, as an example is."""
    with suppress(OSError), folder_of(path, (path.parent,)) as folder:
        content, _ = read_at(folder, path.name, MOST_BYTES)
        if not content or is_certificate(path):
            return True
        with os.scandir(folder) as entries:
            for entry in entries:
                is_like = not is_secret_name(entry.name) and _has_size(entry, len(content))
                if is_like and read_at(folder, entry.name, MOST_BYTES)[0] == content:
                    return True
    return False


def _has_size(entry: os.DirEntry[str], size: int) -> bool:
    status = entry.stat(follow_symlinks=False)
    return stat.S_ISREG(status.st_mode) and status.st_size == size
