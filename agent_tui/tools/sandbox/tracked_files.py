"""Which files git tracks, and with which content, asked of git's index."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.errors import ToolError
from agent_tui.safe_paths import git_entry
from agent_tui.tools.git.command import git_argv
from agent_tui.tools.processes.environment import git_environ
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.sandbox.git_controls import index_stamp

_PATIENCE_S: Final = 5.0


class TrackedFiles:
    """Asks git again only if the files or an index have changed.

    Args:
        keeper: Starts git, outside the wall.
        environ: The environment of commands.
    """

    def __init__(self, keeper: ProcessKeeper, environ: Mapping[str, str]) -> None:
        self._keeper, self._environ = keeper, environ
        self._key: object = None
        self._ids: dict[Path, str] = {}

    def find(self, paths: Collection[Path]) -> Mapping[Path, str]:
        """Those of `paths` that are in an index, and git's id of the content there. Blocking.

        None is if git does not answer in time.
        """
        tops = {path: entry.parent for path in paths if (entry := git_entry(path.parent))}
        indexes = {top: index_stamp(top) for top in tops.values()}
        if self._key != (tops, indexes):
            self._key, self._ids = (tops, indexes), {}
            for top in indexes:
                names = [os.fspath(path.relative_to(top)) for path in tops if tops[path] == top]
                self._ids.update(self._list_index(top, names))
        return self._ids

    def _list_index(self, top: Path, names: Collection[str]) -> Iterator[tuple[Path, str]]:
        with suppress(OSError, ToolError):
            code, listed = self._keeper.run(
                git_argv("--literal-pathspecs", "ls-files", "-s", "-z", "--", *names),
                cwd=top,
                environ=git_environ(self._environ),
                timeout_s=_PATIENCE_S,
                keeps_stderr=False,
            )
            for entry in filter(None, listed.split(b"\0") if code == 0 else ()):
                about, _, name = entry.partition(b"\t")
                yield top / os.fsdecode(name), about.split()[1].decode("ascii")
