"""What git's index and the user's settings say: which files git tracks, and where hooks are."""

import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agent_tui.errors import ToolError
from agent_tui.features.sandbox.git_places import index_stamp
from agent_tui.safe_paths import git_entry, show_name
from agent_tui.tools.git.command import git_argv, object_id
from agent_tui.tools.git.places import git_folders
from agent_tui.tools.git.user_settings import (
    Stamps,
    UserSettings,
    read_user_settings,
    stamps_of,
    user_files,
)
from agent_tui.tools.processes.environment import git_environ
from agent_tui.tools.processes.keeper import ProcessKeeper

_PATIENCE_S: Final = 5.0
_CONVERSIONS: Final = ("filter", "working-tree-encoding")
"""Attributes of files that are not stored as they are in the work tree."""


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
        home = environ.get("HOME")
        self._home = Path(home) if home else None
        self._user_files: list[Path] = []
        self._user_settings = UserSettings()
        self._hooks: dict[Path, tuple[Stamps, str]] = {}

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

    def user_settings(self) -> UserSettings:
        """What the user's own settings lead to, as they are now. Blocking."""
        if not self._user_files:
            self._user_files = list(self._find_user_files())
        known = self._user_settings
        if not known.stamps or stamps_of(known.stamps) != known.stamps:
            self._user_settings = read_user_settings(self._user_files, self._home)
            self._hooks = {}
        return self._user_settings

    def hooks_path(self, entry: Path) -> str:
        """The hooks folder that settings name for the ``.git`` `entry`. Blocking.

        Empty if the user's own name none. Git is asked only if they name one somewhere, and again
        if settings or the branch have changed, as conditions may have. If it does not answer, as
        with settings that it cannot read, its last answer counts. Without one, that is the last
        folder that they name.
        """
        if not (hooks := self.user_settings().hooks):
            return ""
        gits = (git_folders(entry) or ())[:1]
        stamps = stamps_of(git / name for git in gits for name in ("config", "HEAD"))
        if (known := self._hooks.get(entry)) is None or known[0] != stamps:
            folder = entry.parent if entry.name == ".git" else entry
            words = ("--show-origin", "-z", "--type=path", "--get-all", "core.hooksPath")
            if (answer := self._ask(folder, "config", *words)) is None:
                return hooks[-1] if known is None else known[1]
            found = answer.split(b"\0")
            named = [
                os.fsdecode(each)
                for origin, each in zip(found[::2], found[1::2], strict=False)
                if origin.startswith(b"file:")  # we name one on the command line
            ]
            self._hooks[entry] = known = stamps, named[-1] if named else ""
        return known[1]

    def _find_user_files(self) -> Iterator[Path]:
        """The user's settings: where git's manual says, and where this git found some."""
        yield from user_files(self._home, self._environ)
        listed = self._ask(Path(os.sep), "config", "--list", "--show-origin", "-z") or b""
        for origin in listed.split(b"\0")[::2]:
            kind, _, name = origin.partition(b":")
            if kind == b"file":
                yield Path(os.sep, os.fsdecode(name))

    def read(self, path: Path, tracked: Tracked) -> bytes | None:
        """What git has of the file at `path`. Blocking.

        None if a checkout would write something else, or git does not answer in time.
        """
        about = self._ask(path.parent, "check-attr", "-z", *_CONVERSIONS, "--", path.name)
        values = {value for value in (about or b"").split(b"\0")[2::3]}
        if about is None or not values <= {b"unspecified", b"unset"}:
            return None
        return self._ask(path.parent, "cat-file", "blob", tracked.id)

    def find_unstaging(self, path: Path, contents: Collection[bytes | None]) -> str:
        """The command that takes a file or folder out of the index. Blocking.

        Empty if nothing there is staged with one of `contents`, or git does not answer in time.
        """
        if (entry := git_entry(path.parent)) is None:
            return ""
        top, name = entry.parent, os.fspath(path.relative_to(entry.parent))
        words = ("--literal-pathspecs", "diff", "--cached", "--raw", "-z", "--no-abbrev")
        listed = self._ask(top, *words, "--no-renames", "--", name) or b""
        for change in listed.split(b"\0")[:-1:2]:
            id = change.split()[3].decode("ascii")
            if any(each is not None and object_id(each, like=id) == id for each in contents):
                return f"git -C {quote_name(os.fspath(top))} reset -q -- {quote_name(name)}"
        return ""

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


def quote_name(name: str) -> str:
    r"""`name` as a word of a command for bash and zsh, on one line: ``'a b'``, ``$'a\x0ab'``."""
    escaped = show_name(name.replace("\\", r"\\").replace("'", r"\'"))
    return shlex.quote(name) if show_name(name) == name else f"$'{escaped}'"
