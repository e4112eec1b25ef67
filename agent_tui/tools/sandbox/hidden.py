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
        paths: The files hidden now.
        versions: What commands see in place of some of them: the content, and the mode.
    """

    def __init__(
        self, may_show: Callable[[Path], bool], environ: Mapping[str, str], keeper: ProcessKeeper
    ) -> None:
        self.may_show = may_show
        self._tracked = TrackedFiles(keeper, environ)
        self._known: dict[Path, _Stamp] = {}
        self._made: set[Path] = set()
        self._asked: object = None
        self._said: set[Path] = set()
        self.paths: tuple[Path, ...] = ()
        self.versions: dict[Path, tuple[bytes, int]] = {}

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
        tracked = self._tracked.find(hidden)
        key = [(path, now[path]) for path in hidden], tracked
        if self._asked != key:
            shown = frozenset(_find_same(tracked))
            self.paths = tuple(path for path in hidden if path not in shown)
            self.versions = dict(self._read_versions(tracked))
            self._asked = key

    def find_beside(self, folders: Iterable[Path], working: Iterable[Path]) -> tuple[Path, ...]:
        """The files with keys in `folders`, which commands can only read. Blocking.

        Without those in the `working` folders, and without certificates, which programs need.
        """
        found = ProjectWalk(tuple(folders), working).look().secrets
        keys = [path for path in found if not (self.may_show(path) or _is_certificate(path))]
        same = frozenset(_find_same(self._tracked.find(keys)))
        return tuple(path for path in keys if path not in same)

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

    def _read_versions(
        self, tracked: Mapping[Path, Tracked]
    ) -> Iterator[tuple[Path, tuple[bytes, int]]]:
        for path in filter(tracked.__contains__, self.paths):
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
