"""Asks git about commits, and checks what it answers by the ids of the objects.

Commands can write to what git keeps. So what git shows is only searched for a commit with a version
of a file: that it has the version, and in whose history it is, is checked by the ids.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.features.sandbox.file_contents import FileVersion
from agent_tui.features.sandbox.named_commits import MOST_LISTED, noted_ids
from agent_tui.features.sandbox.verified_objects import NOTHING, TreeEntry, VerifiedObjects
from agent_tui.tools.git.command import ask_git, git_argv
from agent_tui.tools.processes.keeper import ProcessKeeper

_MOST_BYTES: Final = 50_000_000
_MOST_TRIED: Final = 5
_MOST_PARENTS: Final = 8
_MOST_SHOWN: Final = 60

_HEAD: Final = re.compile(r"(worktree .*)\nHEAD ([0-9a-f]*[1-9a-f][0-9a-f]*)(?:\n.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommitSearch:
    """Searches the commits of repositories. Each method raises `GitSilentError` if git is silent.

    Args:
        keeper: Starts git, outside the wall.
        environ: The environment of commands.
    """

    keeper: ProcessKeeper
    environ: Mapping[str, str]

    async def read_names(self, store: Path) -> dict[str, str] | None:
        """What each reference and each work tree's HEAD points to, and what else names commits.

        None if there are too many references.
        """
        answer = await self._ask(
            store,
            "for-each-ref",
            f"--count={MOST_LISTED + 1}",
            "--format=%(objectname) %(refname)",
        )
        trees = await self._ask(store, "worktree", "list", "--porcelain")
        lines = [line.split(" ", 1) for line in os.fsdecode(answer).splitlines()]
        refs = {line[1]: line[0] for line in lines if len(line) == 2}
        if len(refs) > MOST_LISTED:
            return None
        for tree in os.fsdecode(trees).split("\n\n"):
            if (found := _HEAD.fullmatch(tree.strip())) is not None:
                refs[found[1]] = found[2]
        noted = await asyncio.to_thread(lambda: list(noted_ids(store)))
        return refs | {f"noted {id}": id for id in noted}

    async def find_existing(self, store: Path, ids: AbstractSet[str]) -> set[str]:
        """Which of the commits `ids` the repository has."""
        words = ("cat-file", "--batch-check=%(objectname)", "--buffer")
        printed = await self._ask(store, *words, lines=ids)
        return set(ids).intersection(printed.decode().split("\n"))

    async def list_commits(
        self, store: Path, most: int, tips: Iterable[str], without: Iterable[str]
    ) -> list[str]:
        """The commits in the history of `tips`, but in none of `without`, the newest first."""
        words = ("rev-list", f"--max-count={most}", "--ignore-missing", "--stdin")
        lines = (*tips, *(f"^{id}" for id in without))
        return (await self._ask(store, *words, lines=lines)).decode().split()

    async def read_commits(self, store: Path, ids: Iterable[str]) -> VerifiedObjects:
        """The commits with these `ids`."""
        printed = await self._ask(store, "cat-file", "--batch", lines=dict.fromkeys(ids))
        return await asyncio.to_thread(VerifiedObjects, printed)

    async def brings(
        self, store: Path, name: Path, version: FileVersion, brought: Sequence[str]
    ) -> bool:
        """Whether one of the commits `brought` has this version of `name`, but no parent of it."""
        if not brought:
            return False
        commits = await self.find_bringing(store, name, version, brought, "--no-walk=unsorted")
        for commit in commits[:_MOST_TRIED]:
            parents = [f"{commit}^{number}" for number in range(1, _MOST_PARENTS + 1)]
            objects = await self._read_objects(store, name, (commit, *parents))
            entry = objects.find(commit, name.parts)
            if entry and version.is_in(*entry) and objects.is_new(commit, name.parts):
                return True
        return False

    async def has_in_history(
        self, store: Path, name: Path, version: FileVersion, tips: Sequence[str]
    ) -> bool:
        """Whether a commit of the history of `tips` has this version of `name`."""
        commits = await self.find_bringing(store, name, version, tips) if tips else []
        if not commits:
            return False
        entry = await self.find_in_history(store, name, commits[0], tips)
        return entry is not None and version.is_in(*entry)

    async def find_in_history(
        self, store: Path, name: Path, commit: str, tips: Sequence[str]
    ) -> TreeEntry | None:
        """The entry of `name` in a `commit` of the history of `tips`; `NOTHING` if it has none.

        None if it is not in their history, or that is not known.
        """
        way = ("rev-list", "--ancestry-path", "--ignore-missing", "--stdin")
        later = await self._ask(store, *way, lines=(*tips, f"^{commit}"))
        objects = await self._read_objects(store, name, (commit,), *tips, *later.decode().split())
        is_in = commit in objects.history_of(tips)
        return objects.find(commit, name.parts) if is_in else None

    async def lacks(
        self, git: Path, name: Path, trusted: Sequence[str], brought: Sequence[str]
    ) -> bool:
        """Whether HEAD of the work tree of `git` has no `name` because of the user's commits.

        Either HEAD is theirs, as after a checkout, or one of their newest commits in its history
        has none, as after a merge or a rebase.

        Args:
            git: The git folder of the work tree.
            name: The file.
            trusted: The user's commits, with their whole history.
            brought: The user's without it.
        """
        words = ("rev-list", "--boundary", "--ignore-missing", "--stdin")
        head = (await self._ask(git, "rev-parse", "HEAD^{commit}")).decode().strip()
        lines = (head, *(f"^{id}" for id in dict.fromkeys((*trusted, *brought))))
        listed = (await self._ask(git, *words, lines=lines)).decode().split()
        newest = [id[1:] for id in listed if id.startswith("-")] or [head]
        objects = await self._read_objects(git, name, (head,))
        if objects.find(head, name.parts) != NOTHING:
            return False
        for commit in newest[:_MOST_TRIED]:
            tips = [*trusted, *({commit} & set(brought))]
            if await self.find_in_history(git, name, commit, tips) == NOTHING:
                return True
        return False

    async def describe(self, store: Path, commit: str) -> str:
        """The short id of a commit, and its subject in brackets."""
        shown = await self._ask(store, "show", "--no-patch", "--format=%h%x00%s", commit)
        id, _, subject = os.fsdecode(shown).partition("\0")
        return f"{id} ({subject.strip()[:_MOST_SHOWN]})"

    async def find_bringing(
        self, store: Path, name: Path, version: FileVersion, tips: Iterable[str], *options: str
    ) -> list[str]:
        """The commits in a history that bring this version of `name`: no parent has it."""
        history = await self._ask(
            store,
            *("--literal-pathspecs", "log", "--format=%H", "--raw", "--no-abbrev", "--no-renames"),
            *("--full-history", "-c", "-z", "--ignore-missing"),
            *options,
            *("--stdin", "--", str(name)),  # ids of commits that git removed since are passed over
            lines=tips,
        )
        return [id for id, entry in _parse(history) if version.is_in(*entry)]

    async def _read_objects(
        self, store: Path, name: Path, commits: Iterable[str], *more: str
    ) -> VerifiedObjects:
        """The objects of `commits` with the folders around `name` in them, and `more` objects."""
        folders = [each.as_posix() for each in list(name.parents)[-2::-1]]
        ids = [
            id
            for commit in commits
            for id in (commit, f"{commit}^{{tree}}", *(f"{commit}:{each}" for each in folders))
        ]
        printed = await self._ask(store, "cat-file", "--batch", lines=(*ids, *more))
        return await asyncio.to_thread(VerifiedObjects, printed)

    async def _ask(self, store: Path, *words: str, lines: Iterable[str] = ()) -> bytes:
        return await ask_git(
            self.keeper,
            git_argv(f"--git-dir={store}", *words),
            store,
            self.environ,
            stdin=os.fsencode("".join(f"{line}\n" for line in lines)),
            most_bytes=_MOST_BYTES,
        )


def _parse(history: bytes) -> Iterator[tuple[str, TreeEntry]]:
    """Each commit and its entry in ``log --format=%H --raw -c -z``.

    A change is ``:mode mode id id status``, and a name in the next part. That of a merge has more
    colons, as many as it has parents, and one more mode and id than these.
    """
    commit, is_name = "", False
    for part in history.split(b"\0"):
        change = part.strip()
        parents = len(change) - len(change.lstrip(b":"))
        if is_name:
            is_name = False
        elif parents:
            is_name = True
            words = change.decode("ascii", "replace").split(" ")
            yield commit, TreeEntry(words[parents], words[2 * parents + 1])
        elif change:
            commit = change.decode("ascii", "replace")
