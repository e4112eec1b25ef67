"""Stages files and hunks. What is staged is decided by what git reports, never by text alone."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_tui.errors import AgentTuiError
from agent_tui.features.review.changes import FileChange, Hunk, split_lines, text_of
from agent_tui.features.review.hunk_places import HunkPlace, place_hunks, switch_place
from agent_tui.safe_paths import show_name
from agent_tui.tools.files.versions import FILE, PROGRAM
from agent_tui.tools.git.private_folder import (
    ask_about_files,
    change_files,
    change_index,
    stage_files,
)
from agent_tui.tools.processes.keeper import ProcessKeeper

IndexMark: TypeAlias = Literal["staged", "partly staged", "conflict"]
"""What git's index has of a file or a hunk, compared with the last commit and the work tree."""

_STATUS: Final = ("status", "--porcelain=v2", "-z", "--no-renames")
_MOST_BYTES = 20_000_000
_WHOLE: Final = "s on the file's name stages the whole file."
_NO_CHANGE: Final = "Git sees no change of {name} since the last commit, or ignores it."
_IN_CONFLICT: Final = "{name} is in conflict. Resolve it, then stage it with git add."
_NOT_IN_INDEX: Final = "Git's index does not have this file, so one hunk cannot be staged alone."
_OTHER_LINES: Final = "Git's index has other lines there, so this hunk cannot be staged alone."
_COMMITTED: Final = "This hunk is in the last commit already."
_CONVERTED: Final = "Git converts this file when it stores it, so one hunk cannot be staged alone."


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file that differs between the last commit, the index and the work tree.

    Attributes:
        name: Its name, relative to the top folder.
        is_unstaged: Whether the file differs from the index.
        is_staged: Whether the index differs from the last commit.
        is_in_conflict: Whether a merge left it undecided.
        modes: Those in the last commit, in the index and of the file; 0 where there is none.
        head_id: Its content in the last commit; empty or zeros for none.
        index_id: That in the index.
    """

    name: str
    is_unstaged: bool
    is_staged: bool = False
    is_in_conflict: bool = False
    modes: tuple[int, ...] = ()
    head_id: str = ""
    index_id: str = ""

    @property
    def mark(self) -> IndexMark | None:
        """What the index has of the file; None if it has what the last commit has."""
        if self.is_in_conflict:
            return "conflict"
        if not self.is_staged:
            return None
        return "partly staged" if self.is_unstaged else "staged"

    @property
    def act(self) -> str:
        """What a commit does with the file, in git's words."""
        head, index, *_ = (*self.modes, 0, 0)
        return "new file" if not head else "modified" if index else "deleted"


class Staging:
    """Stages in one repository.

    Args:
        keeper: Starts git.
        root: The top folder.
        environ: The environment of commands there.
    """

    def __init__(self, keeper: ProcessKeeper, root: Path, environ: Mapping[str, str]) -> None:
        self._keeper = keeper
        self._root = root
        self._environ = environ

    async def switch_files(self, names: Collection[str]) -> str:
        """Stage the files `names`, or unstage them if all is staged; returns what was done.

        Git adds them: contents, kinds, modes and removals, through the user's filters.

        Raises:
            AgentTuiError: Nothing changed, or a file is in conflict.
            GitSilentError: Git refuses.
        """
        found = await self._status(names)
        unstaged = [one.name for one in found if one.is_unstaged]
        if unstaged:
            where = self._keeper, self._root, self._environ
            await stage_files(*where, unstaged, runs_filters=True)
            return "staged" if await self._read(names) else "unstaged"
        await self.unstage_files(names)
        return "unstaged"

    async def unstage_files(self, names: Collection[str]) -> None:
        """Give the index what the last commit has of the files `names`.

        Raises:
            GitSilentError: Git refuses.
        """
        words = ("reset", "-q", "--", *map(_pathspec, names))
        await change_index(self._keeper, self._root, self._environ, *words)

    async def unstage_hunk(self, name: str, change: FileChange, hunk: Hunk) -> None:
        """Take `hunk` of the file `name` out of the index, if it is there.

        Raises:
            AgentTuiError: The index cannot lose this hunk and nothing else.
            GitSilentError: Git refuses.
        """
        found = [one for one in await self._read([name]) if one.is_staged]
        if found and (not change.has_both or {*found[0].modes} - {0, FILE, PROGRAM}):
            await self.unstage_files([name])
        elif found:
            index = await self._lines(found[0].index_id, name)
            place = _place_of(hunk, change, index)
            if index is None or place is None:
                raise AgentTuiError(_OTHER_LINES, _WHOLE)
            if place.is_applied:
                await self._switch(name, found[0].modes[1], index, change, hunk, place)

    async def switch_hunk(self, name: str, change: FileChange, hunk: Hunk) -> str:
        """Stage `hunk` of the file `name`, or unstage it; returns what was done.

        If the whole file came, went or is a link, that is one change: `switch_files`.

        Raises:
            AgentTuiError: The index cannot get this hunk and nothing else.
            GitSilentError: Git refuses.
        """
        (status,) = await self._status([name])
        if not change.has_both or {*status.modes} - {0, FILE, PROGRAM}:
            return await self.switch_files([name])
        if len(status.modes) < 2 or not status.modes[1]:
            raise AgentTuiError(_NOT_IN_INDEX, _WHOLE)
        index = await self._lines(status.index_id, name)
        place = _place_of(hunk, change, index)
        if index is None or place is None:
            raise AgentTuiError(_OTHER_LINES, _WHOLE)
        if place.is_applied:
            committed = await self._lines(status.head_id, name)
            in_commit = _place_of(hunk, change, committed)
            if in_commit is None or in_commit.is_applied:
                raise AgentTuiError(*((_COMMITTED,) if in_commit else (_OTHER_LINES, _WHOLE)))
        await self._switch(name, status.modes[1], index, change, hunk, place)
        return "unstaged" if place.is_applied else "staged"

    async def _switch(
        self,
        name: str,
        mode: int,
        index: Sequence[str],
        change: FileChange,
        hunk: Hunk,
        place: HunkPlace,
    ) -> None:
        lines = switch_place(index, change.lines("old"), change.lines("new"), hunk, place)
        await self._write(name, mode, "".join(lines).encode("utf-8"))

    async def _status(self, names: Collection[str]) -> list[FileStatus]:
        """How git sees `names`; at least one of them differs.

        Raises:
            AgentTuiError: None does, or one is in conflict.
        """
        found = await self._read(names)
        first = show_name(next(iter(names)))
        if not found:
            raise AgentTuiError(_NO_CHANGE.format(name=first))
        if any(one.is_in_conflict for one in found):
            raise AgentTuiError(_IN_CONFLICT.format(name=first))
        return found

    async def _read(self, names: Collection[str]) -> list[FileStatus]:
        """How git sees those of `names` that differ."""
        words = (*_STATUS, "--untracked-files=all", "--", *map(_pathspec, names))
        answer = await ask_about_files(self._keeper, self._root, self._environ, *words)
        return [one for one in _read_statuses(answer) if one.name in names]

    async def _lines(self, blob: str, name: str) -> list[str] | None:
        """The lines of a blob as git would check them out; None if it is no text."""
        if not blob.strip("0"):
            return None
        text = text_of(await self._checked_out(blob, name))
        return split_lines(text) if text is not None else None

    async def _checked_out(self, blob: str, name: str) -> bytes:
        return await read_checked_out(self._keeper, self._root, blob, name, self._environ)

    async def _write(self, name: str, mode: int, content: bytes) -> None:
        """Put `content`, as in the work tree, into the index.

        Raises:
            AgentTuiError: Git would check out something else.
        """
        write = ("hash-object", "-w", f"--path={name}", "--stdin")
        blob = (await self._order(*write, stdin=content)).decode("ascii").strip().split("\n")[-1]
        if await self._checked_out(blob, name) != content:
            raise AgentTuiError(_CONVERTED, _WHOLE)
        line = f"{mode:o} {blob}\t{name}\0".encode("utf-8", "surrogateescape")
        await self._order("update-index", "-z", "--index-info", stdin=line)

    async def _order(self, *words: str, stdin: bytes | None = None) -> bytes:
        where = self._keeper, self._root, self._environ
        return await change_files(*where, *words, runs_filters=True, stdin=stdin)


async def read_index(
    keeper: ProcessKeeper, root: Path, environ: Mapping[str, str]
) -> list[FileStatus]:
    """The files that are staged or in conflict, by the state of the index. No filter runs.

    Raises:
        GitSilentError: Git cannot tell.
    """
    answer = await ask_about_files(keeper, root, environ, *_STATUS, "--untracked-files=no")
    return [one for one in _read_statuses(answer) if one.mark is not None]


async def read_checked_out(
    keeper: ProcessKeeper, root: Path, blob: str, name: str, environ: Mapping[str, str]
) -> bytes:
    """The content of `blob` with the line ends it has when git checks it out as `name`.

    No filter runs.

    Raises:
        GitSilentError: Git cannot tell.
    """
    words = ("cat-file", "--filters", f"--path={name}", blob)
    return await ask_about_files(keeper, root, environ, *words, most_bytes=_MOST_BYTES)


def mark_hunks(
    change: FileChange, index: bytes | None, head: bytes | None
) -> Iterator[tuple[str, IndexMark]]:
    """The keys of the hunks of `change` that the index has and the last commit does not.

    A hunk is partly staged if the index has other lines there than before and after the change.
    """
    places, committed = (_all_places(change, content) for content in (index, head))
    for hunk, place, before in zip(change.hunks, places, committed, strict=True):
        if before is not None and before.is_applied:
            continue
        if place is None and before is not None:
            yield hunk.key, "partly staged"
        elif place is not None and place.is_applied:
            yield hunk.key, "staged"


def _all_places(change: FileChange, content: bytes | None) -> Sequence[HunkPlace | None]:
    text = text_of(content)
    if text is None:
        return [None] * len(change.hunks)
    return place_hunks(split_lines(text), change.lines("old"), change.lines("new"), change.hunks)


def _place_of(hunk: Hunk, change: FileChange, lines: Sequence[str] | None) -> HunkPlace | None:
    if lines is None:
        return None
    places = place_hunks(lines, change.lines("old"), change.lines("new"), change.hunks)
    return next(
        (place for one, place in zip(change.hunks, places, strict=True) if one.key == hunk.key),
        None,
    )


def _pathspec(name: str) -> str:
    return f":(top,literal){name}"


def _read_statuses(answer: bytes) -> Iterator[FileStatus]:
    """Parse `git status` format 2 without renames."""
    for record in answer.split(b"\0"):
        kind, _, rest = record.partition(b" ")
        match kind:
            case b"1":
                letters, _, *fields, path = rest.split(b" ", 7)
                modes = tuple(int(mode, 8) for mode in fields[:3])
                ids = (one.decode("ascii") for one in fields[3:])
                is_staged, is_unstaged = (letter != "." for letter in letters.decode("ascii"))
                name = os.fsdecode(path)
                yield FileStatus(name, is_unstaged, is_staged, False, modes, *ids)
            case b"u":
                path = rest.split(b" ", 9)[-1]
                yield FileStatus(os.fsdecode(path), is_unstaged=True, is_in_conflict=True)
            case b"?":
                yield FileStatus(os.fsdecode(rest), is_unstaged=True)
            case _:
                pass
