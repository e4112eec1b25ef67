"""Files with keys in the working folders, which sandboxed commands do not see."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_folder
from agent_tui.tools.git.command import object_id
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.sandbox.beneath import MOST_BYTES
from agent_tui.tools.sandbox.project_walk import ProjectWalk
from agent_tui.tools.sandbox.tracked_files import TrackedFiles

_Stamp: TypeAlias = tuple[int, int]
"""Inode and ``ctime``."""


class HiddenFiles:
    """Which files of a conversation's folders are hidden: ``.env`` and key files.

    Files that git has with the same content are not hidden: commands can read them anyway, and
    commits would fail. What a command created itself stays visible (``cp .env.example .env``, then
    ``npm start``). Once the user changes such a file, it is hidden.

    Args:
        may_show: Whether a rule of the user shows a file.
        environ: The environment of commands, for git.
        keeper: Starts git.

    Attributes:
        may_show: The argument, which may be replaced.
        paths: The files hidden now.
    """

    def __init__(
        self, may_show: Callable[[Path], bool], environ: Mapping[str, str], keeper: ProcessKeeper
    ) -> None:
        self.may_show = may_show
        self._tracked = TrackedFiles(keeper, environ)
        self._known: dict[Path, _Stamp] = {}
        self._made: set[Path] = set()
        self._asked: object = None
        self._shown = frozenset[Path]()
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
        key = [(path, now[path]) for path in hidden], self._tracked.find(hidden)
        if self._asked != key:
            self._asked, self._shown = key, frozenset(self._find_tracked(hidden))
        self.paths = tuple(path for path in hidden if path not in self._shown)

    def find_beside(self, folders: Iterable[Path], working: Iterable[Path]) -> tuple[Path, ...]:
        """The files with keys in `folders`, which commands can only read. Blocking.

        Without those in the `working` folders, and without certificates, which programs need.
        """
        found = ProjectWalk(tuple(folders), working).look().secrets
        keys = [path for path in found if not (self.may_show(path) or _is_certificate(path))]
        tracked = frozenset(self._find_tracked(keys))
        return tuple(path for path in keys if path not in tracked)

    def hint(self, command: str, printed: str) -> str:
        """A hint for the model if a failed command met a hidden file, once for each file."""
        text = f"{command}\n{printed}"
        for path in self.paths:
            named = re.search(rf"(?<![\w.-]){re.escape(path.name)}(?![\w.-])", text)
            if named and path not in self._said:
                self._said.add(path)
                return (
                    f"{path.name} exists, but commands in the sandbox cannot see it, as it may "
                    f"hold keys; the user can allow it with the rule read({path.name})"
                )
        return ""

    def _find_tracked(self, paths: Sequence[Path]) -> Iterator[Path]:
        for path, id in self._tracked.find(paths).items():
            with suppress(OSError):
                if _has_content(path, id):
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


def _has_content(path: Path, id: str) -> bool:
    """Whether `path` has the content of git's `id`, which a command may have put into the index."""
    with open_regular_file(path, follow_links=False) as file:
        content = file.read(MOST_BYTES)
    return object_id(content, like=id) == id
