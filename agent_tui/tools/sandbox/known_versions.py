"""Which versions of a file the user's repositories had before commands could write to them.

A checkout, a merge or a rebase writes files that editors and agents read. Their text comes from the
user's commits, so nobody needs to be asked. But commands can also create commits, and point any
branch to them. So only those commits count that existed when the repository was first seen, and
those that references moved to while no command ran: by the user's own pull, fetch or commit. All
conversations share what is known of a repository, as they may have other folders of it.

Each file belongs to the repository that it lies in: a submodule, say, or one within another. The
work trees of a repository share what is known of it, so one that a command adds has the user's
versions. A repository that a command creates has none.

Commands can also write to what git keeps. So the history that git shows is only searched for a
commit with the version: that it is in the history of the user's commits, and has the version, is
checked by the ids of the objects.
"""

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from agent_tui.atomic_files import replace_private_file
from agent_tui.safe_paths import git_entry
from agent_tui.tools.files.protected import fold_name
from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv, object_id
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.sandbox.beneath import read_own
from agent_tui.tools.sandbox.git_controls import folders_in, git_folders
from agent_tui.tools.sandbox.obeyed_state import BusyMarker, References
from agent_tui.tools.sandbox.verified_objects import VerifiedObjects

_MOST_REFS: Final = 2_000
_MOST_LISTED: Final = 5_000
"""References of a repository; if it has more, no later commit of the user's counts."""

_MOST_BYTES: Final = 50_000_000
_MOST_REF_BYTES: Final = 64_000_000
_PATIENCE_S: Final = 3.0
_SEARCH_S: Final = 8.0
"""The history of one file is searched only when a command changed it. 60,000 commits take up to
5 s."""

_MOST_TREES: Final = 200
"""Work trees, the nearest first. Asking git about one takes 10 ms, but only if it has moved."""

_HEAD: Final = re.compile(r"(worktree .*)\nHEAD ([0-9a-f]*[1-9a-f][0-9a-f]*)(?:\n.*)?", re.DOTALL)

RefsStamp: TypeAlias = tuple[tuple[str, int], ...]


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
        self._keeper, self._environ = keeper, environ
        self._roots = tuple(roots)
        self._folder = folder
        self._name = os.urandom(8).hex()
        self._markers: dict[Path, BusyMarker] = {}
        self._stores: dict[Path, Path] = {}
        self._stamps: dict[Path, RefsStamp] = {}
        self._references: dict[Path, References] = {}

    def find_moved(self, entries: Iterable[Path]) -> dict[Path, RefsStamp]:
        """The repositories in which a reference may have moved since the last note. Blocking.

        Args:
            entries: Each ``.git`` in the working folders.
        """
        here = (*filter(None, map(git_entry, self._roots)), *entries)
        found = {entry.parent: git_folders(entry) for entry in here if entry.name == ".git"}
        stores = {top: folders[1] for top, folders in found.items() if folders is not None}
        self._stores = dict(islice(stores.items(), _MOST_TREES))
        stamps = {store: _refs_stamp(store) for store in dict.fromkeys(self._stores.values())}
        return {store: stamp for store, stamp in stamps.items() if self._stamps.get(store) != stamp}

    async def note(self, moved: Mapping[Path, RefsStamp], *, are_persons: bool) -> None:
        """Record where references point now.

        Args:
            moved: The repositories to read.
            are_persons: Whether no command of this conversation ran since the last time. Then the
                user moved them, unless another conversation runs commands in the repository.

        Raises:
            OSError: Our folder cannot be used.
        """
        for store, stamp in moved.items():
            self._stamps[store] = stamp  # whatever git answers, it is not called again for this
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    now = await self._refs(store)
            except (GitSilentError, TimeoutError):
                now = None
            # In this order: what a command has moved by now is in the file, or it still runs.
            is_busy = self._marker_of(store).is_another_busy()
            known = self._read(store)
            if are_persons and not is_busy and now is not None and known.last is not None:
                fresh = (id for name, id in now.items() if known.last.get(name) != id)
                known.trusted = list(dict.fromkeys((*fresh, *known.trusted)))[:_MOST_REFS]
            known.last = now
            self._references[store] = known
            replace_private_file(self._file_of(store), known.model_dump_json().encode())

    def say_busy(self) -> None:
        """Note that commands run in these repositories from now on.

        Raises:
            OSError: Our folder cannot be used.
        """
        for store in set(self._stores.values()):
            self._marker_of(store).say_busy()

    def say_idle(self) -> None:
        """Note that no command of this conversation runs."""
        for marker in self._markers.values():
            marker.say_idle()

    def close(self) -> None:
        """Remove the notes that this conversation runs commands."""
        for marker in self._markers.values():
            marker.remove()

    def _read(self, store: Path) -> References:
        with suppress(OSError, ValueError):
            return References.model_validate_json(read_own(self._file_of(store)))
        return self._references.get(store, References(last={}))

    def _file_of(self, store: Path) -> Path:
        return self._folder / hashlib.sha256(os.fsencode(store)).hexdigest() / "references.json"

    def _marker_of(self, store: Path) -> BusyMarker:
        running = self._file_of(store).with_name("running")
        return self._markers.setdefault(store, BusyMarker(running, self._name))

    async def has(self, path: Path, content: bytes) -> bool:
        """Whether the user's commits have `path` with this content.

        False too if git does not answer in time, and for what no checkout writes.
        """
        top = next((each for each in path.parents if each in self._stores), None)
        known = None if top is None else self._references.get(self._stores[top])
        if top is None or known is None or not known.trusted:
            return False
        name, tips = path.relative_to(top), known.trusted
        if ".git" in map(fold_name, name.parts):
            return False
        try:
            async with asyncio.timeout(_SEARCH_S):
                return await self._is_in_history(self._stores[top], name, content, tips)
        except (GitSilentError, TimeoutError):
            return False

    async def _is_in_history(
        self, store: Path, name: Path, content: bytes, tips: Sequence[str]
    ) -> bool:
        """Whether a commit of the history of `tips` has `name` with this content.

        Raises:
            GitSilentError: Git does not answer.
        """
        history = await self._ask(
            store,
            *("--literal-pathspecs", "log", "--format=%H", "--raw", "--no-abbrev", "--no-renames"),
            *("--no-ext-diff", "--no-textconv", "--full-history", "-m", "-z", "--ignore-missing"),
            *("--stdin", "--", str(name)),  # ids of commits that git removed since are passed over
            lines=tips,
        )
        commits = (id for id, blob in _parse(history) if object_id(content, like=blob) == blob)
        if (commit := next(commits, None)) is None:
            return False
        later = await self._ask(
            store,
            "rev-list",
            "--ancestry-path",
            "--ignore-missing",
            "--stdin",
            lines=(*tips, f"^{commit}"),
        )
        folders = (f"{commit}:{each.as_posix()}" for each in list(name.parents)[-2::-1])
        ids = (commit, f"{commit}^{{tree}}", *folders, *tips, *later.decode().split())
        printed = await self._ask(store, "cat-file", "--batch", lines=ids)
        objects = await asyncio.to_thread(VerifiedObjects, printed)
        found = objects.find(commit, name.parts)
        return (
            found is not None
            and found == object_id(content, like=found)
            and objects.is_reachable(commit, tips)
        )

    async def _ask(self, store: Path, *words: str, lines: Iterable[str] = ()) -> bytes:
        return await ask_git(
            self._keeper,
            git_argv(f"--git-dir={store}", "--no-replace-objects", *words),
            store,
            self._environ,
            stdin=os.fsencode("".join(f"{line}\n" for line in lines)),
            most_bytes=_MOST_BYTES,
        )

    async def _refs(self, store: Path) -> dict[str, str] | None:
        """What each reference and each work tree's HEAD points to; None if they are too many.

        Raises:
            GitSilentError: Git does not answer.
        """
        answer = await self._ask(
            store,
            "for-each-ref",
            f"--count={_MOST_LISTED + 1}",
            "--sort=-creatordate",
            "--format=%(objectname) %(refname)",
        )
        trees = await self._ask(store, "worktree", "list", "--porcelain")
        lines = [line.split(" ", 1) for line in os.fsdecode(answer).splitlines()]
        refs = {line[1]: line[0] for line in lines if len(line) == 2}
        if len(refs) > _MOST_LISTED:
            return None
        for tree in os.fsdecode(trees).split("\n\n"):
            if (found := _HEAD.fullmatch(tree.strip())) is not None:
                refs[found[1]] = found[2]
        return refs


def _refs_stamp(store: Path) -> RefsStamp:
    """A digest of all files that hold a reference; changes when one does.

    Their times say less: what is written to a mapped file changes them only once.
    """
    return tuple(sorted(_refs_files(store)))


def _refs_files(store: Path) -> Iterator[tuple[str, int]]:
    pending: list[str] = []
    for git in (store, *folders_in(store / "worktrees")):
        pending += [f"{git}/{name}" for name in ("HEAD", "packed-refs", "refs", "reftable")]
    for place in pending:
        try:
            yield place, _read(place)
        except IsADirectoryError:
            with suppress(OSError), os.scandir(place) as entries:
                pending += [f"{place}/{entry.name}" for entry in entries]
        except OSError:
            continue
        if len(pending) > _MOST_LISTED:
            yield "", time.monotonic_ns()  # git is asked every time
            return


def _read(file: str) -> int:
    """A digest of what is in `file`, with a key that no other program knows.

    Raises:
        OSError: It cannot be read.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        size = os.fstat(descriptor).st_size + 1  # a large buffer costs more than the file
        return hash(os.read(descriptor, min(size, _MOST_REF_BYTES)))
    finally:
        os.close(descriptor)


def _parse(history: bytes) -> Iterator[tuple[str, str]]:
    """Each commit and blob in ``log --format=%H --raw -z``.

    A change is ``:mode mode id id status``, and a name in the next part.
    """
    commit, is_name = "", False
    for part in history.split(b"\0"):
        words = part.strip().split(b" ")
        if is_name:
            is_name = False
        elif len(words) == 5 and words[0].startswith(b":"):
            is_name = True
            yield commit, words[3].decode("ascii", "replace")
        else:
            commit = part.decode("ascii", "replace")
