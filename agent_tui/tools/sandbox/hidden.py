"""Files with keys in the working folders, which sandboxed commands do not see."""

import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_folder, is_link
from agent_tui.tools.git.command import object_id
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.sandbox.beneath import MOST_BYTES
from agent_tui.tools.sandbox.plan import existing_files
from agent_tui.tools.sandbox.project_walk import ProjectWalk
from agent_tui.tools.sandbox.tracked_files import Tracked, TrackedFiles

_Stamp: TypeAlias = tuple[int, int]
"""Inode and ``ctime``."""


class HiddenFiles:
    """Which files of a conversation's folders are hidden: ``.env`` and key files.

    Files that git has with the same content are not hidden: commands can read them anyway, and
    commits would fail. In place of those that the user has changed, commands see what git has.
    What a command created itself stays visible (``cp .env.example .env``, then ``npm start``). Once
    the user changes such a file, it is hidden.

    Args:
        may_show: Whether a rule of the user shows a file.
        environ: The environment of commands, for git.
        keeper: Starts git.

    Attributes:
        may_show: The argument, which may be replaced.
        paths: The files hidden now in working folders.
    """

    def __init__(
        self, may_show: Callable[[Path], bool], environ: Mapping[str, str], keeper: ProcessKeeper
    ) -> None:
        self.may_show = may_show
        self._here = _ComparedWithGit(keeper, environ)
        self._beside = _ComparedWithGit(keeper, environ)
        self._walk_beside = ProjectWalk(())
        self._known: dict[Path, _Stamp] = {}
        self._made: set[Path] = set()
        self._said: set[Path] = set()
        self.paths: tuple[Path, ...] = ()

    def take(self, secrets: Iterable[Path], *, by_commands: bool) -> None:
        """Update from the result of a walk. Blocking.

        Args:
            secrets: `WalkFindings.secrets`.
            by_commands: Whether commands made the changes since the last call.
        """
        now = {path: stamp for path in secrets if (stamp := _stamp(path)) is not None}
        inodes = {inode for inode, _ in self._known.values()}
        for path, stamp in now.items():
            if not by_commands and self._known.get(path) != stamp:
                self._made.discard(path)
            elif by_commands and path not in self._known and stamp[0] not in inodes:
                self._made.add(path)  # not only moved there
        self._known = now
        unseen = (path for path in now if path not in self._made and not self.may_show(path))
        hidden = [path for path in unseen if not is_folder(path)]  # what a link leads to
        self.paths = self._here.find_changed({path: now[path] for path in hidden})

    def search_beside(self, folders: Iterable[Path], working: Iterable[Path]) -> None:
        """Have `find_beside` search `folders` without the `working` folders in them."""
        self._walk_beside = ProjectWalk(tuple(folders), working, opens=False)

    def find_beside(self) -> tuple[Path, ...]:
        """The files with keys in folders that commands can only read. Blocking.

        Without certificates, which programs need.
        """
        found = self._walk_beside.look().secrets
        keys = [path for path in found if not (self.may_show(path) or _is_certificate(path))]
        stamps = {path: stamp for path in keys if (stamp := _stamp(path)) is not None}
        return existing_files(self._beside.find_changed(stamps))

    @property
    def versions(self) -> Mapping[Path, tuple[bytes, int]]:
        """What commands see in place of some hidden files: the content, and the mode."""
        return self._here.versions | self._beside.versions

    def hint(self, command: str, printed: str) -> str:
        """A hint for the model if a failed command met a hidden file, once for each file."""
        text = f"{command}\n{printed}"
        for path in self.paths:
            named = re.search(rf"(?<![\w.-]){re.escape(path.name)}(?![\w.-])", text)
            if named and path not in self._said:
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
            if object_id(file.read(MOST_BYTES), like=id) == id:
                yield path


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def _is_certificate(path: Path) -> bool:
    with suppress(OSError), open_regular_file(path, follow_links=False) as file:
        return path.suffix == ".pem" and b"PRIVATE KEY" not in file.read(MOST_BYTES)
    return False
