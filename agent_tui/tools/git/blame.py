"""Asks git which commit a committed line comes from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv
from agent_tui.tools.git.status import nearest_git
from agent_tui.tools.processes.keeper import ProcessKeeper

_MOST_FILE_BYTES = 5_000_000
_COMMIT = re.compile(r"([0-9a-f]{40,64}) \d+ \d+(?: \d+)?")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit; `time` is when it was authored, as ISO 8601 in UTC."""

    id: str
    author: str
    time: str
    summary: str


class Blame:
    """Asks about one file as it is in the current commit. Use it in trusted folders only.

    The file on disk is not looked at, so git runs no filter.

    Args:
        keeper: Starts git.
        path: The file, absolute.
        environ: The environment for git.
    """

    def __init__(self, keeper: ProcessKeeper, path: Path, environ: Mapping[str, str]) -> None:
        self._keeper = keeper
        self._path = path
        self._environ = environ

    async def committed(self) -> bytes:
        """The file in the current commit; empty if git does not have it."""
        if "GIT_DIR" not in self._environ and nearest_git(self._path.parent, self._environ) is None:
            return b""
        return await self._ask("show", f"HEAD:./{self._path.name}")

    async def commit_of(self, line: int) -> Commit | None:
        """The commit that line number `line` of the committed file comes from; None if unknown."""
        place = (f"-L{line},{line}", "HEAD", "--", self._path.name)
        answer = await self._ask("blame", "--no-textconv", "--porcelain", *place)
        first, *rest = answer.decode("utf-8", "replace").split("\n")
        commit = _COMMIT.fullmatch(first)
        if commit is None:
            return None
        facts = {key: value for key, _, value in (line.partition(" ") for line in rest)}
        seconds = facts.get("author-time", "")
        moment = datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() else None
        time = moment.isoformat(timespec="seconds").replace("+00:00", "Z") if moment else ""
        return Commit(commit[1], facts.get("author", ""), time, facts.get("summary", ""))

    async def _ask(self, command: str, *arguments: str) -> bytes:
        argv = git_argv(command, *arguments)
        try:
            return await ask_git(
                self._keeper,
                argv,
                self._path.parent,
                self._environ,
                most_bytes=_MOST_FILE_BYTES,
            )
        except GitSilentError:
            return b""
