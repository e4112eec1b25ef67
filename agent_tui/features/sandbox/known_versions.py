"""Which versions of a file are in the user's commits.

A checkout, a merge or a rebase writes files that editors and agents read. If their text comes from
the user's commits, nobody needs to be asked. But commands can also create commits, and point any
branch to them. So only these commits count:

- those that existed when the repository was first seen, with their whole history;
- those that the user made or fetched later: a reference moved to them while no command ran, and
  they are in the history of nothing that was named before. A commit of the user's on top of
  others says nothing about what it has from them.

What references, reflogs and unfinished work name while a command runs may be the command's, or
the user's, who pulled meanwhile: nobody can tell. So it never counts without a question. All
conversations share what is known of a repository, as they may have other folders of it. What is
known of a commit holds in each repository that has it, as the user may move one, clone it, or fetch
from it. What is known of one that is gone stays for that. A commit that the user brought to one of
them is theirs in all.

Each file belongs to the repository that it lies in: a submodule, say, or one within another. The
work trees of a repository share what is known of it, so one that a command adds has the user's
versions. A repository that a command creates has none until the user commits in it.
"""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from agent_tui.atomic_files import replace_private_file
from agent_tui.features.sandbox.beneath import list_own, read_own
from agent_tui.features.sandbox.change_authors import Author
from agent_tui.features.sandbox.commit_search import CommitSearch
from agent_tui.features.sandbox.file_contents import FileVersion
from agent_tui.features.sandbox.named_commits import NamesStamp, listed_ids, stamp_of
from agent_tui.features.sandbox.repository_commits import MOST_BROUGHT, RepositoryCommits
from agent_tui.features.sandbox.running_commands import BusyMarker
from agent_tui.safe_paths import git_entry
from agent_tui.tools.files.protected import fold_name
from agent_tui.tools.git.command import GitSilentError
from agent_tui.tools.git.places import git_folders
from agent_tui.tools.processes.keeper import ProcessKeeper

_PATIENCE_S: Final = 3.0
_SEARCH_S: Final = 8.0
"""The history of one file is searched only when a command changed it. 60,000 commits take up to
5 s."""

_MOST_COMPARED: Final = 5_000
_RECORD: Final = "references.json"
_ALL: Final = ("--exclude=refs/replace/*", "--all")

_MOST_TREES: Final = 200
"""Work trees, the nearest first. Asking git about one takes 10 ms, but only if it has moved."""

_T = TypeVar("_T")


class KnownVersions:
    """Knows the versions in repositories whose work trees are `roots`, around them or in them.

    Args:
        keeper: Starts git, outside the wall.
        environ: The environment of commands.
        roots: The working folders.
        folder: Our folder for what all conversations know of repositories.
    """

    def __init__(
        self,
        keeper: ProcessKeeper,
        environ: Mapping[str, str],
        roots: Iterable[Path],
        folder: Path,
    ) -> None:
        self._search = CommitSearch(keeper, environ)
        self._roots = tuple(roots)
        self._folder = folder
        self._name = os.urandom(8).hex()
        self._markers: dict[Path, BusyMarker] = {}
        self._stores: dict[Path, Path] = {}
        self._stamps: dict[Path, NamesStamp] = {}
        self._references: dict[Path, RepositoryCommits] = {}
        self._read_at: dict[Path, tuple[int, int]] = {}

    def find_moved(self, entries: Iterable[Path]) -> dict[Path, NamesStamp]:
        """The repositories in which a reference may have moved since the last note. Blocking.

        Args:
            entries: Each ``.git`` in the working folders.
        """
        here = (*filter(None, map(git_entry, self._roots)), *entries)
        found = {entry.parent: git_folders(entry) for entry in here if entry.name == ".git"}
        stores = {top: folders[1] for top, folders in found.items() if folders is not None}
        self._stores = dict(islice(stores.items(), _MOST_TREES))
        stamps = {store: stamp_of(store) for store in dict.fromkeys(self._stores.values())}
        return {store: stamp for store, stamp in stamps.items() if self._stamps.get(store) != stamp}

    async def note(self, moved: Mapping[Path, NamesStamp], *, are_persons: bool) -> None:
        """Record which commits the repositories name now.

        Args:
            moved: The repositories to read.
            are_persons: Whether no command of this conversation ran since the last time. Then they
                are the user's, unless another conversation runs commands in the repository.

        Raises:
            OSError: Our folder cannot be used.
        """
        records = await asyncio.to_thread(self._read_all) if moved and are_persons else ()
        for store, stamp in moved.items():
            self._stamps[store] = stamp  # whatever git answers, it is not called again for this
            now = await _answer(self._search.read_names(store), None, _PATIENCE_S)
            listed: list[str] = []
            if now is None and are_persons and self._read(store).is_unknown:
                listed = await asyncio.to_thread(listed_ids, store)
            # In this order: what a command has moved by now is in the file, or it still runs.
            is_busy = self._marker_of(store).author_elsewhere() != "user"
            known = self._read(store).model_copy(deep=True)  # unchanged if git is interrupted
            if now is None and listed and not is_busy:
                now = {f"noted {id}": id for id in listed}
            if now is None or is_busy or not are_persons:
                known.take_foreign(now)
            else:
                await self._learn(store, known, records, set(now.values()))
                named = known.named
                if fresh := known.take_users(now):
                    brought = self._list_brought(store, fresh, named, known)
                    known.add_brought(await _answer(brought, [], _PATIENCE_S))
            self._store(store, known)

    async def _learn(
        self,
        store: Path,
        known: RepositoryCommits,
        records: Iterable[RepositoryCommits],
        named: AbstractSet[str],
    ) -> None:
        """Add to `known` what `records` say of commits that the repository has, too.

        It may have been moved, cloned, or fetched from. If git is silent, of commits in `named`.
        """
        users = known.users.union(*(each.users for each in records))
        strange = set[str]().union(*(each.others for each in records)) - users - known.others
        there = await self._find_there(store, strange, named)
        if there:
            there |= await self._find_there(store, users, named)
            for each in records:
                known.learn(each, there)

    async def _find_there(self, store: Path, ids: set[str], named: AbstractSet[str]) -> set[str]:
        """Which of the commits `ids` the repository has; if git is silent, which are in `named`."""
        if not ids:
            return set()
        found = self._search.find_existing(store, ids)
        return await _answer(found, ids & named)

    def say(self, author: Author) -> None:
        """Note who names commits in these repositories from now on.

        Raises:
            OSError: Our folder cannot be used.
        """
        for store in {*self._stores.values(), *self._markers}:
            self._marker_of(store).say(author)

    def close(self) -> None:
        """Remove the notes that this conversation runs commands."""
        for marker in self._markers.values():
            marker.remove()

    def _read(self, store: Path) -> RepositoryCommits:
        """What is known of `store` by now, also to other programs."""
        file = self._file_of(store)
        with suppress(OSError, ValueError):
            status = file.stat()
            read_at = status.st_ino, status.st_mtime_ns
            if self._read_at.get(store) != read_at:
                self._references[store] = RepositoryCommits.model_validate_json(read_own(file))
                self._read_at[store] = read_at
        return self._references.get(store, RepositoryCommits())

    def _read_all(self) -> list[RepositoryCommits]:
        """What is known of all repositories that there are or were. Blocking."""
        found = list[RepositoryCommits]()
        for folder in list_own(self._folder):
            with suppress(OSError, ValueError):
                content = read_own(folder / _RECORD)
                found.append(RepositoryCommits.model_validate_json(content))
        return found

    def _store(self, store: Path, known: RepositoryCommits) -> None:
        self._references[store] = known
        replace_private_file(self._file_of(store), known.model_dump_json().encode())

    def _file_of(self, store: Path) -> Path:
        return self._folder / hashlib.sha256(os.fsencode(store)).hexdigest() / _RECORD

    def _marker_of(self, store: Path) -> BusyMarker:
        running = self._file_of(store).with_name("running")
        return self._markers.setdefault(store, BusyMarker(running, self._name))

    async def has(self, path: Path, version: FileVersion) -> bool:
        """Whether the user's commits have this version of `path`.

        False too if git does not answer in time, and for what no checkout writes.
        """
        if (found := self._known_at(path)) is None:
            return False
        store, name, known = found
        return known.is_approved(name, version) or await _answer(
            self._has_commit(store, name, version, known), otherwise=False
        )

    async def _has_commit(
        self, store: Path, name: Path, version: FileVersion, known: RepositoryCommits
    ) -> bool:
        search = self._search
        return await search.brings(
            store, name, version, known.brought
        ) or await search.has_in_history(store, name, version, known.trusted)

    async def lack(self, path: Path) -> bool:
        """Whether git removes `path` because of the user's commits: HEAD has no such file.

        False too if git does not answer in time.
        """
        if (found := self._known_at(path)) is None:
            return False
        _, name, known = found
        folders = git_folders(path.parents[len(name.parts) - 1] / ".git")
        git = folders[0] if folders else path.parent
        lacks = self._search.lacks(git, name, known.trusted, known.brought)
        return await _answer(lacks, otherwise=False)

    def approve(
        self, path: Path, version: FileVersion | None, now: FileVersion | None = None
    ) -> None:
        """Note which version of `path` the user approved of last, in all work trees. Blocking.

        Args:
            path: The file.
            version: The version; None if they want another since, in this work tree.
            now: That one, if there is one.

        Raises:
            OSError: Our folder cannot be used.
        """
        if (found := self._known_at(path)) is None:
            return
        store, name, known = found
        if version or known.has_approval(name) or (now and known.is_withdrawn(name, now)):
            known.approve(name, version, now)
            self._store(store, known)

    def is_withdrawn(self, path: Path, version: FileVersion) -> bool:
        """Whether the user allowed this version of `path`, and wants another since. Blocking."""
        found = self._known_at(path)
        return found is not None and found[2].is_withdrawn(found[1], version)

    async def commit_with(self, path: Path, version: FileVersion) -> str:
        """A commit of anybody that a reference leads to, and that brings this version of `path`.

        Only in a repository of the user's. It is for the user to read, and no proof of anything.

        Returns:
            Its short id, and its subject in brackets; empty if there is none, or git does not
            answer in time.
        """
        if (found := self._known_at(path)) is None:
            return ""
        return await _answer(self._describe_bringing(*found, version), otherwise="")

    async def _describe_bringing(
        self, store: Path, name: Path, known: RepositoryCommits, version: FileVersion
    ) -> str:
        tips = [f"^{id}" for id in known.trusted]  # what these have is the user's
        commits = await self._search.find_bringing(store, name, version, tips, *_ALL)
        return await self._search.describe(store, commits[0]) if commits else ""

    def _known_at(self, path: Path) -> tuple[Path, Path, RepositoryCommits] | None:
        """The repository of `path`, its name there, and what is known; None if none is the user's.

        None too for what no checkout writes.
        """
        top = next((each for each in path.parents if each in self._stores), None)
        if top is None or not (known := self._read(self._stores[top])).is_users:
            return None
        name = path.relative_to(top)
        return None if ".git" in map(fold_name, name.parts) else (self._stores[top], name, known)

    async def _list_brought(
        self, store: Path, fresh: Iterable[str], named: Iterable[str], known: RepositoryCommits
    ) -> list[str]:
        """The user's commits in the history of `fresh` that are in no history of `named`.

        What git finds through a commit of `named` is passed over, so what commands forge there
        only hides commits. What is listed is checked by the ids of the objects. A commit that is as
        old as a foreign one was made from it, by a rebase or ``commit --amend``. Git keeps the time
        of the author then, but tidies the name, so names say nothing.
        """
        search = self._search
        commits = await search.list_commits(store, MOST_BROUGHT, fresh, named)
        objects = await search.read_commits(store, (*fresh, *commits))
        around = known.foreign or ()
        foreign = await search.list_commits(store, _MOST_COMPARED, around, known.trusted)
        others = set(foreign) - set(known.brought)
        times = (await search.read_commits(store, others)).times_of(others)
        if None in times:
            return []
        history = objects.history_of(fresh)
        return [id for id in commits if id in history and times.isdisjoint(objects.times_of((id,)))]


async def _answer(answer: Awaitable[_T], otherwise: _T, patience_s: float = _SEARCH_S) -> _T:
    """The `answer` of git, or `otherwise` if it does not give one in time."""
    try:
        async with asyncio.timeout(patience_s):
            return await answer
    except (GitSilentError, TimeoutError):
        return otherwise
