"""Which versions of a file the user's repository had before commands could write to it.

A checkout, a merge or a rebase writes files that editors and agents read. Their text comes from the
user's commits, so nobody needs to be asked. But commands can also create commits, and point any
branch to them. So only those commits count that existed when the repository was first seen, and
those that references moved to while no command ran: by the user's own pull, fetch or commit.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from agent_tui.safe_paths import git_entry
from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv, object_id
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.sandbox.git_controls import repositories_of
from agent_tui.tools.sandbox.obeyed_state import References

_MOST_REFS: Final = 2_000
_MOST_LISTED: Final = 5_000
_PATIENCE_S: Final = 3.0
"""The history of one file is searched only when a command changed it."""

RefsStamp: TypeAlias = tuple[tuple[str, int], ...]


class KnownVersions:
    """Knows the versions in the repositories whose work trees are `roots`, or around them.

    Args:
        keeper: Starts git, outside the wall.
        environ: The environment of commands.
        roots: The working folders.
    """

    def __init__(
        self, keeper: ProcessKeeper, environ: Mapping[str, str], roots: Iterable[Path]
    ) -> None:
        self._keeper, self._environ = keeper, environ
        self._roots = tuple(roots)
        self._tops: tuple[Path, ...] = ()
        self._stamps: dict[Path, RefsStamp] = {}
        self.references: dict[Path, References] = {}

    def find_moved(self) -> dict[Path, RefsStamp]:
        """The repositories in which a reference may have moved since the last note. Blocking."""
        self._tops = _tops_of(self._roots)
        stamps = {top: _refs_stamp(top) for top in self._tops}
        return {top: stamp for top, stamp in stamps.items() if self._stamps.get(top) != stamp}

    async def note(self, moved: Mapping[Path, RefsStamp], *, are_persons: bool) -> None:
        """Record where references point now.

        Args:
            moved: The repositories to read.
            are_persons: Whether no command ran since the last time, so that the user moved them.
        """
        for top, stamp in moved.items():
            known = self.references.get(top)
            self._stamps[top] = stamp  # whatever git answers, it is not called again for this
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    now = await self._refs(top)
            except (GitSilentError, TimeoutError):
                continue
            known = known or References()
            if are_persons:
                fresh = {id for name, id in now.items() if known.last.get(name) != id}
                known.trusted = list(dict.fromkeys((*fresh, *known.trusted)))[:_MOST_REFS]
            known.last = now
            self.references[top] = known

    async def has(self, path: Path, content: bytes) -> bool:
        """Whether the user's commits have `path` with this content.

        False too if git does not answer in time.
        """
        top = self._around(path)
        known = None if top is None else self.references.get(top)
        if top is None or known is None or not known.trusted:
            return False
        argv = git_argv(
            "log",
            *("--format=", "--raw", "--no-abbrev", "--no-renames", "--full-history", "-m", "-z"),
            *("--stdin", "--ignore-missing", "--", str(path.relative_to(top))),
        )
        tips = "".join(f"{id}\n" for id in known.trusted).encode()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                answer = await ask_git(self._keeper, argv, top, self._environ, stdin=tips)
        except (GitSilentError, TimeoutError):
            return False
        return any(object_id(content, like=id) == id for id in _ids_in(answer))

    def _around(self, path: Path) -> Path | None:
        return next((top for top in self._tops if path.is_relative_to(top)), None)

    async def _refs(self, top: Path) -> dict[str, str]:
        listing = git_argv(
            "for-each-ref",
            f"--count={_MOST_REFS}",
            "--sort=-creatordate",
            "--format=%(objectname) %(refname)",
        )
        answer = await ask_git(self._keeper, listing, top, self._environ)
        head = git_argv("rev-parse", "--verify", "-q", "HEAD")
        newest = await ask_git(self._keeper, head, top, self._environ, allowed=(0, 1, 128))
        lines = [line.split(" ", 1) for line in os.fsdecode(answer).splitlines()]
        refs = {line[1]: line[0] for line in lines if len(line) == 2}
        if id := newest.decode("ascii", "replace").strip():
            refs["HEAD"] = id
        return refs


def _tops_of(roots: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(entry.parent for entry in map(git_entry, roots) if entry))


def _refs_stamp(top: Path) -> RefsStamp:
    """The ``ctime`` of all files that hold a reference; changes when one does."""
    return tuple(sorted(_refs_files(top)))


def _refs_files(top: Path) -> Iterator[tuple[str, int]]:
    pending: list[str] = []
    for git in repositories_of(top / ".git"):
        pending += [f"{git}/{name}" for name in ("HEAD", "packed-refs", "refs", "reftable")]
    for place in pending:
        try:
            yield place, os.lstat(place).st_ctime_ns
            if place.rpartition("/")[2] in ("HEAD", "packed-refs") or len(pending) > _MOST_LISTED:
                continue
            with os.scandir(place) as entries:
                pending += [f"{place}/{entry.name}" for entry in entries]
        except OSError:
            continue


def _ids_in(answer: bytes) -> Iterator[str]:
    """Parse the ids of ``log --raw -z``: ``:mode mode id id status`` and a name per change."""
    for part in answer.split(b"\0"):
        words = part.strip().split(b" ")
        if len(words) == 5 and words[0].startswith(b":"):
            for id in words[2:4]:
                if id.strip(b"0"):
                    yield id.decode("ascii", "replace")
