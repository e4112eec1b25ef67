"""What git's index and the user's settings say: which files git tracks, and where hooks are."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agent_tui.errors import ToolError
from agent_tui.safe_paths import git_entry
from agent_tui.tools.git.command import git_argv
from agent_tui.tools.processes.environment import git_environ
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.sandbox.git_controls import index_stamp

_PATIENCE_S: Final = 5.0
_CONVERSIONS: Final = ("filter", "working-tree-encoding")
"""Attributes of files that are not stored as they are in the work tree."""

_USERS: Final = ("--global", "--system")
"""The settings of the user, and those of the machine, which the former override."""


class Tracked(NamedTuple):
    """A file in an index: git's id of the content, and its mode."""

    id: str
    mode: int


class TrackedFiles:
    """Asks git again only if the files or an index have changed.

    Args:
        keeper: Starts git, outside the wall.
        environ: The environment of commands.
    """

    def __init__(self, keeper: ProcessKeeper, environ: Mapping[str, str]) -> None:
        self._keeper, self._environ = keeper, environ
        self._key: object = None
        self._found: dict[Path, Tracked] = {}
        self._hooks_path: str | None = None

    def find(self, paths: Collection[Path]) -> Mapping[Path, Tracked]:
        """Those of `paths` that are in an index. Blocking.

        None is if git does not answer in time.
        """
        if not paths:
            return {}
        tops = {path: entry.parent for path in paths if (entry := git_entry(path.parent))}
        indexes = {top: index_stamp(top) for top in tops.values()}
        if self._key != (tops, indexes):
            self._key, self._found = (tops, indexes), {}
            for top in indexes:
                names = [os.fspath(path.relative_to(top)) for path in tops if tops[path] == top]
                self._found.update(self._list_index(top, names))
        return self._found

    def hooks_path(self, folder: Path) -> str:
        """The hooks folder that the user's own settings name, for git in `folder`. Blocking.

        Empty if they name none, or git does not answer in time. Git is asked once.
        """
        if self._hooks_path is None:
            words = ("--includes", "--type=path", "--get", "core.hooksPath")
            scopes = (self._ask(folder, "config", scope, *words) for scope in _USERS)
            self._hooks_path = os.fsdecode(next(filter(None, scopes), b"")).rstrip("\n")
        return self._hooks_path

    def read(self, path: Path, tracked: Tracked) -> bytes | None:
        """What git has of the file at `path`. Blocking.

        None if a checkout would write something else, or git does not answer in time.
        """
        about = self._ask(path.parent, "check-attr", "-z", *_CONVERSIONS, "--", path.name)
        values = {value for value in (about or b"").split(b"\0")[2::3]}
        if about is None or not values <= {b"unspecified", b"unset"}:
            return None
        return self._ask(path.parent, "cat-file", "blob", tracked.id)

    def make_index(self, git: Path) -> bool:
        """Have git write the index of the git folder `git` again, from its commit. Blocking.

        Without a commit, it is empty.

        Returns:
            Whether git did.
        """
        words = (f"--git-dir={git}", "read-tree")
        tries = (self._ask(git, *words, tree) for tree in ("HEAD", "--empty"))
        return any(answer is not None for answer in tries)

    def _list_index(self, top: Path, names: Collection[str]) -> Iterator[tuple[Path, Tracked]]:
        listed = self._ask(top, "--literal-pathspecs", "ls-files", "-s", "-z", "--", *names)
        for entry in filter(None, (listed or b"").split(b"\0")):
            about, _, name = entry.partition(b"\t")
            mode, id, _ = about.decode("ascii").split()
            yield top / os.fsdecode(name), Tracked(id, int(mode, 8))

    def _ask(self, folder: Path, *words: str) -> bytes | None:
        """What a git command prints; None if it fails."""
        with suppress(OSError, ToolError):
            code, printed = self._keeper.run(
                git_argv(*words),
                cwd=folder,
                environ=git_environ(self._environ),
                timeout_s=_PATIENCE_S,
                keeps_stderr=False,
            )
            return printed if code == 0 else None
        return None
