"""What git's index and the user's settings say: which files and repositories git tracks."""

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agent_tui.errors import ToolError
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import git_entry
from agent_tui.tools.git.command import git_argv
from agent_tui.tools.processes.environment import git_environ
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.sandbox.git_controls import index_stamp, repositories_of

_PATIENCE_S: Final = 5.0
_CONVERSIONS: Final = ("filter", "working-tree-encoding")
"""Attributes of files that are not stored as they are in the work tree."""

_USERS: Final = ("--global", "--system")
"""The settings of the user, and those of the machine, which the former override."""

_GITLINK: Final = (0o160000).to_bytes(4, "big")
_SHARED: Final = b"link\0"
"""What an index has if it names a repository, or an extension for more of the index."""

_LINKS: Final = re.compile(rb"(?:^|\0)160000 [0-9a-f]+ \d\t([^\0]+)")


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
        self._links: dict[Path, tuple[bytes, list[Path]]] = {}

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

    def find_gitlinks(self, entries: Iterable[Path]) -> Iterator[Path]:
        """The ``.git`` of each repository that an index names, wherever it lies. Blocking.

        ``git status`` in the project runs what such a repository's settings name.

        Args:
            entries: Each ``.git`` that is known, whose indexes are read. They are not returned.
        """
        pending = list(entries)
        seen = set(pending)
        for entry in pending:
            for link in self._gitlinks_of(entry):
                if link not in seen and os.path.lexists(link):
                    seen.add(link)
                    pending.append(link)
                    yield link

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

    def _gitlinks_of(self, entry: Path) -> Sequence[Path]:
        git = next(repositories_of(entry), entry)
        try:
            with open_regular_file(git / "index") as file:
                index = file.read()
        except OSError:
            return ()
        if _GITLINK not in index and _SHARED not in index:
            return ()
        digest = hashlib.sha256(index).digest()
        known = self._links.get(entry)
        if known is None or known[0] != digest:
            listed = self._ask(entry.parent, f"--git-dir={git}", "ls-files", "-s", "-z") or b""
            names = (os.fsdecode(name) for name in _LINKS.findall(listed))
            folders = (os.path.realpath(entry.parent / name) for name in names)
            known = self._links[entry] = digest, [Path(folder, ".git") for folder in folders]
        return known[1]

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
