"""Asks git which commit a committed line comes from, and what a file was called before."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv
from agent_tui.tools.git.status import nearest_git, top_folder
from agent_tui.tools.processes.keeper import ProcessKeeper

_MOST_FILE_BYTES = 5_000_000
_COMMIT = re.compile(r"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit; `time` is when it was authored, as ISO 8601 in UTC.

    `committed_ms` is when it was committed, in milliseconds since 1970; 0 if git doesn't say.
    """

    id: str
    author: str
    time: str
    summary: str
    committed_ms: int = 0


@dataclass(frozen=True, slots=True)
class Rename:
    """A rename or a copy, as git detects it: half of the content is the same (``-M``).

    Attributes:
        before: The path before, absolute; empty if the file was added.
        after: The path afterwards.
        until_ms: When it was committed, in milliseconds since 1970; None if it is only staged.
    """

    before: str
    after: str
    until_ms: int | None


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
        self._folder = path.parent
        self._environ = environ

    def of_former(self, path: str) -> "Blame":
        """Asks about the file at `path`, absolute, which may be gone with its folder."""
        former = Blame(self._keeper, Path(path), self._environ)
        former._folder = self._folder
        return former

    async def committed(self) -> bytes:
        """The file in the current commit; empty if git does not have it."""
        if "GIT_DIR" not in self._environ and nearest_git(self._folder, self._environ) is None:
            return b""
        return await self._ask("show", f"HEAD:{self._name()}")

    async def commits_of(self, lines: Sequence[int]) -> dict[int, Commit]:
        """The commits that lines of the committed file come from, by number, where known.

        Args:
            lines: Their numbers in rising order.
        """
        if not lines:
            return {}
        ranges = [f"-L{first},{last}" for first, last in _runs(lines)]
        options = ("--no-textconv", "--line-porcelain", *ranges)
        answer = await self._ask("blame", *options, "HEAD", "--", self._name())
        commits: dict[int, Commit] = {}
        number, commit_id, facts = 0, "", dict[str, str]()
        for row in answer.decode("utf-8", "replace").split("\n"):
            if row.startswith("\t"):
                commits[number] = _commit(commit_id, facts)
                number, commit_id, facts = 0, "", {}
            elif not commit_id and (found := _COMMIT.fullmatch(row)):
                commit_id, number = found[1], int(found[2])
            else:
                key, _, value = row.partition(" ")
                facts[key] = value
        return commits

    async def renames(self) -> list[Rename]:
        """The renames that led to the file, and its addition, newest first; as far as git knows."""
        try:
            top = await top_folder(self._keeper, self._folder, self._environ)
        except GitSilentError:
            return []
        staged = await self._ask(
            "diff-index", "--cached", "-M", "--diff-filter=R", "--name-status", "-z", "HEAD"
        )
        renames = [one for one in _renames(staged, top) if one.after == str(self._path)]
        name = f":(literal){renames[0].before if renames else self._path}"
        options = ("--follow", "-M", "--diff-filter=ARC", "--name-status", "-z", "--format=%ct")
        return [*renames, *_renames(await self._ask("log", *options, "HEAD", "--", name), top)]

    def _name(self) -> str:
        return f"./{os.path.relpath(self._path, self._folder)}"

    async def _ask(self, command: str, *arguments: str) -> bytes:
        argv = git_argv(command, *arguments)
        try:
            return await ask_git(
                self._keeper,
                argv,
                self._folder,
                self._environ,
                most_bytes=_MOST_FILE_BYTES,
            )
        except GitSilentError:
            return b""


def _renames(answer: bytes, top: Path) -> Iterator[Rename]:
    """The renames in names between NULs, each commit's below its time."""
    until_ms: int | None = None
    words = iter(os.fsdecode(answer).split("\0"))
    for word in words:
        if word.isdecimal():
            until_ms = int(word) * 1000 + 999
        elif word.strip():
            before = "" if word.strip() == "A" else str(top / next(words))
            yield Rename(before, str(top / next(words)), until_ms)


def _runs(lines: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and last of each run of consecutive numbers."""
    first = lines[0]
    for line, following in zip(lines, (*lines[1:], 0), strict=True):
        if following != line + 1:
            yield first, line
            first = following


def _commit(commit_id: str, facts: Mapping[str, str]) -> Commit:
    seconds = facts.get("author-time", "")
    moment = datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() else None
    time = moment.isoformat(timespec="seconds").replace("+00:00", "Z") if moment else ""
    committed = facts.get("committer-time", "")
    committed_ms = int(committed) * 1000 + 999 if committed.isdecimal() else 0
    author, summary = facts.get("author", ""), facts.get("summary", "")
    return Commit(commit_id, author, time, summary, committed_ms)
