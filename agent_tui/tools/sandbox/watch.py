"""Protects files that outside programs follow, whatever commands in the wall do.

What exists is protected in one of three ways (`obeyed_state.Protection`). A read-only mount is the
simplest, but git cannot change such a file: a merge or rebase that must do so fails half-way. So a
*folder* (``.vscode``) is replaced inside by a copy that commands may change, and a file that git
tracks, a *text* that runs nothing itself (``AGENTS.md``), or what is in a work tree that git must
be able to remove, is only compared. The changes are examined after each command. Versions that the
user's commits have, or that were in place before, are accepted; anything else is set aside, and the
previous content restored. Changes in a copied or mounted place are not visible outside before that.

What does not exist yet cannot be protected by a mount: it is searched for after each command. New
git repositories stay, except hooks, and settings that could run programs.

The user works in the same folders. What was covered before anything that runs now began is changed
by the user alone. What changed while only jobs ran, or after the user replaced a covered file, may
be the user's: it stays, and they are asked. Only what changed during a command is set aside at
once.

The approved state is on disk while commands run. After ``kill -9`` the next conversation in the
folder compares with it.
"""

import asyncio
import os
from collections.abc import (
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO

from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import ToolError
from agent_tui.file_locks import LockHeldError, lock_within
from agent_tui.paths import make_private_dir
from agent_tui.safe_paths import is_folder, is_link
from agent_tui.tools.files.home_links import describe_linked
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.sandbox.beneath import (
    folder_of,
    move_in,
    remove_folder,
    reopen,
    separate,
)
from agent_tui.tools.sandbox.git_controls import (
    ControlKind,
    controls_at,
    covers_of,
    git_place,
    is_linked_tree,
    named_in_tree,
    plain_content,
    why_obeyed,
)
from agent_tui.tools.sandbox.git_index import INDEX
from agent_tui.tools.sandbox.held import HeldFile, HeldStore
from agent_tui.tools.sandbox.hidden import HiddenFiles
from agent_tui.tools.sandbox.known_versions import KnownVersions, RefsStamp
from agent_tui.tools.sandbox.obeyed import WORK_TREES, who_obeys_folder
from agent_tui.tools.sandbox.obeyed_state import (
    LINK,
    OTHER,
    Approved,
    BusyMarker,
    Contents,
    Look,
    Question,
    entries_of,
    files_of,
    work_trees_in,
)
from agent_tui.tools.sandbox.plan import Covers, identify
from agent_tui.tools.sandbox.project_walk import MOST_FOLDERS, ProjectWalk, WalkFindings
from agent_tui.tools.sandbox.tracked_files import TrackedFiles

_TOO_MANY = (
    f"This project has more than {MOST_FOLDERS:,} folders. In the deepest of them, commands see "
    "files with keys, and what they leave for editors, shells and git is not examined. To avoid "
    "that, start in a subfolder."
)
_MOVED = (
    "{} was moved or replaced while a command ran. What the command wrote since is in the folder "
    "that was there before. Nobody checked what it left there for editors, shells and git."
)
_RESTORED = (
    "{} was deleted by a command and is back: only the user removes git's hooks and settings."
)
_FOLLOWED = (
    "{} is a folder that {} obeys, so each change that a command makes there needs the approval of "
    "the user."
)
_STUCK = (
    "{} is starting a command in this folder and does not go on. Nothing was run. Continue or end "
    "that program, then try again."
)
_TURN_WITHIN_S = 15.0
"""A turn of another program takes milliseconds, and seconds if git or the disk is slow."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What was done after a command.

    Args:
        held: What the user decides on.
        brought: Files that git changed to a version from the user's commits.
        notice: What the user and the model are told once.
    """

    held: tuple[HeldFile, ...] = ()
    brought: tuple[Path, ...] = ()
    notice: str = ""


@dataclass(frozen=True, slots=True)
class _Change:
    """One change made by commands, or perhaps by the user.

    Args:
        path: What it affects.
        source: Where it is now: elsewhere for a copy.
        who: Why the user decides.
        before: The digest of what was there; empty for nothing.
        files: What must be known for it to stay: paths and digests.
        control: For one of git's own files, which no commit brings: its kind.
        may_be_users: Whether the user had a hand in it.
        link: The link through which alone it is followed.
    """

    path: Path
    source: Path
    who: str
    before: str = ""
    files: tuple[tuple[Path, str], ...] = ()
    control: ControlKind | None = None
    may_be_users: bool = False
    link: Path | None = None


@dataclass(slots=True)
class _Judged:
    """The decision on what commands did.

    Args:
        look: The state that was judged.
        aside: Which of it was set aside.
        ours: What we wrote in the meantime: the digest of each file.
        only_jobs: Whether only jobs ran since the last look.
    """

    look: Look
    aside: set[Path] = field(default_factory=set[Path])
    ours: dict[Path, str] = field(default_factory=dict[Path, str])
    only_jobs: bool = False

    def stays(self, path: Path) -> bool:
        """Whether nothing around `path` was set aside."""
        return self.aside.isdisjoint((path, *path.parents))


class ObeyedWatch:
    """Watches the working folders of one conversation.

    Call `note` before a command, `hold` after it; several commands may overlap. Between the two,
    other programs may do the same in the same folder.

    Args:
        roots: The working folders, the workspace first.
        folder: Our folder for these roots; hidden from commands.
        keeper: Starts git, outside the wall.
        environ: The environment of commands.
        has_mounts: Whether the wall can protect files in writable folders.
        linked: See `find_linked`.
        repositories: Our folder for what all conversations know of repositories; None for one
            in `folder`.
        unchecked: See `ProjectWalk`.

    Attributes:
        found: The result of the latest walk.
        hidden: The files that commands do not see.
        covers: What the wall must mount from now on.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        folder: Path,
        *,
        keeper: ProcessKeeper,
        environ: Mapping[str, str],
        has_mounts: bool = True,
        linked: Mapping[Path, Path] = MappingProxyType({}),
        repositories: Path | None = None,
        unchecked: Iterable[str] = (),
    ) -> None:
        roots = tuple(dict.fromkeys(root.resolve() for root in roots))
        places = [place for place in map(git_place, roots) if place is not None]
        gits = {git for place in places for git in (place.entry, place.folder)}
        outside = [git for git in gits if not any(root in git.parents for root in roots)]
        self._tracked = TrackedFiles(keeper, environ)
        self._walk = ProjectWalk(
            roots,
            (folder,),
            sorted(outside),
            unchecked=unchecked,
            settings=(root for root in roots if root in linked),
        )
        self._roots = tuple(dict.fromkeys((*roots, *(place.folder for place in places))))
        repositories = repositories or folder / "repositories"
        self._folder = folder
        self._own = (folder, repositories, repositories.with_name("conversations"))
        self._contents = Contents(folder / "versions", (*self._roots, folder / "copies"))
        self._store = HeldStore(folder / "held", self._roots)
        self._versions = KnownVersions(keeper, environ, self._walk.roots, repositories)
        self._has_mounts = has_mounts
        self._own_copies = folder / "copies" / f"{os.getpid()}-{os.urandom(4).hex()}"
        self._commands = self._jobs = 0
        self._is_unsettled = self._is_unclear = False
        name = self._own_copies.name
        self._marker, self._near = (
            BusyMarker(folder / "running", name),
            BusyMarker(self._own[-1], name, self._roots),
        )
        self._approved = Approved()
        self._state_file = folder / "approved.json"
        self._written: tuple[bytes, tuple[int, int]] = b"", (0, 0)
        self._made: set[Path] = set()
        self._covered: dict[Path, int] = {}
        self._pending: list[HeldFile] = []
        self._is_limit_told = False
        self._ground: dict[Path, tuple[int, int]] = {}
        self._told: set[Path] = set()
        self._linked = linked
        self._followed = {root: who for root in roots if (who := who_obeys_folder(root))}
        self._notices = [
            *describe_linked(linked, roots),
            *(_FOLLOWED.format(root, who) for root, who in self._followed.items()),
        ]
        self._turn = asyncio.Lock()
        self.hidden = HiddenFiles(lambda _path: False, environ, keeper)
        self.found = WalkFindings()
        self.covers = Covers()
        self._synced: dict[Path, dict[str, str]] = {}

    async def recover(self) -> tuple[HeldFile, ...]:
        """Compare with the approved state if a program was killed while commands ran.

        Call this when a conversation begins. What is held is also part of the next `hold`.

        Raises:
            ToolError: Our folder cannot be used.
        """
        async with self._turn:
            before = len(self._pending)
            with _convert_errors():
                if await asyncio.to_thread(self._take_up):
                    await self._settle()
                self._say_if_idle()
            return tuple(self._pending[before:])

    async def note(self) -> None:
        """Note that a command begins: the current state is the user's, if nothing else runs.

        Raises:
            ToolError: Our folder cannot be used, so no command may run.
        """
        async with self._turn:
            with _convert_errors(), self._marker.open_turn() as turn:
                is_users, is_alone, moved = await asyncio.to_thread(self._begin, turn)
                if not is_users:
                    await self._settle(only_jobs=is_alone and self._runs_only_jobs)
                elif moved:
                    await self._versions.note(moved, are_persons=True)
                    await asyncio.to_thread(self._approve)
                self._versions.say_busy()
            if not (self._commands or self._jobs or self._is_unsettled):
                self._ground, self._told = self._identify_roots(), set()
            self._commands += 1

    async def hold(self, *, is_over: bool = True, is_told: bool = True) -> Settled:
        """Judge what a command did that ended, or continues as a job.

        Args:
            is_over: False if it becomes a job: then call `end_job` at its end.
            is_told: Whether the result is reported; otherwise held files are in the next one.

        Raises:
            ToolError: Our folder cannot be used.
        """
        async with self._turn:
            with _convert_errors():
                try:
                    brought = await self._settle(is_over=is_over)
                finally:
                    self._commands -= 1
                    self._jobs += not is_over
                self._say_if_idle()
            if not is_told:
                return Settled()
            held, self._pending = (*self._pending, *self._questions()), []
            return Settled(held, tuple(brought), self._take_notice())

    async def end_job(self) -> None:
        """Judge what a job did that ended; held files are in the next result.

        Raises:
            ToolError: Our folder cannot be used.
        """
        async with self._turn:
            with _convert_errors():
                try:
                    await self._settle(only_jobs=self._runs_only_jobs)
                finally:
                    self._jobs -= 1
                self._say_if_idle()

    async def decide(self, held: HeldFile, may_stay: bool) -> HeldFile:
        """Do what the user decided on a held file. Only what they were shown may stay.

        Args:
            held: The file.
            may_stay: Whether it is to be where it was found.

        Returns:
            `held`, or where it was moved.

        Raises:
            ToolError: It cannot be done; the text says why.
        """
        async with self._turn:
            if not held.is_in_place:
                if may_stay:
                    await asyncio.to_thread(self._store.put_in_place, held)
                    await self._approve_part(held.path)
                return held
            with _convert_errors():
                return await asyncio.to_thread(self._decide_in_place, held, may_stay)

    async def accept(self, paths: Iterable[Path]) -> None:
        """Accept that our own tools wrote `paths` with approval: nothing of it is held."""
        async with self._turn:
            for path in paths:
                self._approved.asked.pop(path, None)
                self.hidden.note_own(path)
                await self._approve_part(path)

    def _decide_in_place(self, held: HeldFile, may_stay: bool) -> HeldFile:
        state, path = self._approved, held.path
        if may_stay:
            self._store.check(held)
        who, before = state.asked.pop(path, Question(held.who, ""))
        if not may_stay and os.path.lexists(path):  # whatever it is by now
            kind = self._look().controls.get(path)
            ours: dict[Path, str] = {}
            known = ((path, state.files.get(path, "")),)
            held = self._put_aside(_Change(path, path, who, before, known, kind), ours)
            gone = {each for each in state.files if each.is_relative_to(path)}
            state.files = {each: state.files[each] for each in state.files.keys() - gone} | ours
            if before:
                state.files.setdefault(path, before)
            elif not ours:
                state.nodes.discard(path)
        self._write_state()
        return held

    async def close(self) -> None:
        """Close the watch once no command runs or will run. What jobs left is judged before.

        If that fails, the next program in the folder does it.
        """
        async with self._turn:
            if self._commands or self._jobs or self._is_unsettled:
                with suppress(OSError):
                    await self._settle(only_jobs=self._runs_only_jobs)
            await asyncio.to_thread(self._remove)

    def _remove(self) -> None:
        self._marker.remove(is_settled=not self._is_unsettled)
        self._near.remove()
        self._versions.close()
        remove_folder(self._own_copies)

    def _begin(self, turn: IO[bytes]) -> tuple[bool, bool, Mapping[Path, RefsStamp]]:
        """How things are as a command begins, once no other program takes up the user's state.

        If git need not be called, the user's state is adopted at once: each thread switch costs a
        command 0.1 ms.

        Returns:
            Whether the state is the user's, whether no other program runs commands, and for which
            repositories git must be called.

        Raises:
            ToolError: A working folder is missing, or another program does not go on.
        """
        if missing := self._find_missing():
            raise ToolError(f"{missing} is no longer there. Nothing was run.")
        try:
            lock_within(turn.fileno(), _TURN_WITHIN_S)
        except LockHeldError as error:
            raise ToolError(_STUCK.format(error.owner)) from error
        is_alone = not self._take_up()
        if not is_alone:
            self._covered = {}
        is_users = is_alone and not (
            self._commands or self._jobs or self._is_unsettled or self._is_near_busy()
        )
        moved: Mapping[Path, RefsStamp] = {}
        if is_users:
            look = self._look()
            moved = self._versions.find_moved(self.found.gits)
            if not moved:
                self._approve(look=look)
        return is_users, is_alone, moved

    def _take_up(self) -> bool:
        """Read the state stored on disk; returns whether another program may have changed files."""
        self._marker.say_busy()  # in case this program is killed
        has_state = self._stamp_of_state() == self._written[1]
        if not has_state and (state := Approved.read(self._state_file)) is not None:
            self._approved, has_state = state, True
            self._walk.first = state.first
        return self._marker.is_another_busy() and has_state

    def _is_near_busy(self) -> bool:
        """Whether commands of another conversation run in a folder around these or in them.

        What is new since the last look may be theirs. Without a last look, all is the user's, but
        no known version until those commands have ended and what they did was judged.
        """
        self._near.say_busy()
        is_busy, has_looked = self._near.is_another_busy(), self._written[0] != b""
        self._is_unclear = is_busy and (self._is_unclear or not has_looked)
        return is_busy and has_looked

    def _questions(self) -> Iterator[HeldFile]:
        """What was left in place, as it is now, until the user has decided."""
        for path, (who, before) in self._approved.asked.items():
            with suppress(OSError):
                yield self._store.describe_at(path, path, who, self._contents.of(before))

    @property
    def _runs_only_jobs(self) -> bool:
        return not (self._commands or self._is_unsettled)

    def _say_if_idle(self) -> None:
        if not (self._commands or self._jobs):
            self._marker.say_idle()
            self._near.say_idle()
            self._versions.say_idle()

    def _take_notice(self) -> str:
        if self._walk.left_out and not self._is_limit_told:
            self._is_limit_told = True
            self._notices.append(_TOO_MANY)
        notices, self._notices = self._notices, []
        return " ".join(notices)

    def _find_missing(self) -> Path | None:
        return next((root for root in self._walk.roots if not is_folder(root)), None)

    def _identify_roots(self) -> dict[Path, tuple[int, int]]:
        """The working folders that no command can move: none in another."""
        roots = self._walk.roots
        return identify(root for root in roots if not any(each in root.parents for each in roots))

    def _is_moved(self) -> bool:
        """Whether a working folder is another than when the first running command began."""
        now = self._identify_roots()
        moved = {root for root, was in self._ground.items() if now.get(root) != was}
        self._notices += [_MOVED.format(root) for root in sorted(moved - self._told)]
        self._told |= moved
        return bool(moved)

    def _stamp_of_state(self) -> tuple[int, int]:
        try:
            status = self._state_file.stat()
        except OSError:
            return 0, 1
        return status.st_ino, status.st_mtime_ns

    def _look(self) -> Look:
        self.found = found = self._walk.look()
        self._split_around_work_trees()
        hooks_path = self._find_hooks_path()
        trees, elsewhere = set[Path](), set(self._linked)
        for entry in found.gits:
            is_tree = is_linked_tree(entry) and self._is_below(entry.parent)
            trees |= {entry.parent} if is_tree else set()
            for path in named_in_tree(entry, hooks_path):
                self._follow(path, "git")
                elsewhere |= set() if is_tree else {path}
        for path, link in self._linked.items():
            self._follow(path, f"what reads {link}")
        for root, who in self._followed.items():
            for path in set(entries_of(root)) - {work_trees_in(root), root / ".git"}:
                self._follow(path, who)
        # A command can make any folder a work tree, but not what is followed from elsewhere.
        bare = {
            node
            for node in found.obeyed
            if not self._has_mounts
            or not (
                trees.isdisjoint(node.parents)
                or any(path.is_relative_to(node) for path in elsewhere)
            )
        }
        files = [path for path in found.obeyed if not is_folder(path)]
        tracked = self._tracked.find(files) if self._has_mounts else ()
        return self._contents.look_at(found, bare=bare, tracked=tracked, hooks_path=hooks_path)

    def _split_around_work_trees(self) -> None:
        """Follow what is beside an agent's work trees instead of the folder around all of it."""
        obeyed = self.found.obeyed
        for node in list(obeyed):
            if (trees := work_trees_in(node)) is not None:
                who = obeyed.pop(node)
                obeyed.update((path, who) for path in entries_of(node) if path != trees)

    def _find_hooks_path(self) -> str:
        return self._tracked.hooks_path(self._walk.roots[0]) if self.found.gits else ""

    async def _approve_part(self, path: Path) -> None:
        with _convert_errors():
            await asyncio.to_thread(self._approve, path)

    def _approve(
        self, only: Path | None = None, look: Look | None = None, judged: _Judged | None = None
    ) -> None:
        """Make the current state the approved one.

        Args:
            only: Only for this file or folder.
            look: The current state, if known.
            judged: Commands made it; what they did since then is not accepted.
        """
        look = look or self._look()
        had_jobs = judged is not None and judged.only_jobs
        by_commands = judged is not None and not had_jobs
        new, self._walk.new = self._walk.new, set()
        self.hidden.take(
            self.found.secrets, by_commands=by_commands, had_jobs=had_jobs, new_folders=new
        )
        state = self._approved
        if only is not None:
            _take_part(state, look, only)
        elif judged is not None:
            _take_judged(state, look, judged)
        else:
            state.nodes, state.files = set(look.nodes), look.files
        for path, (_, before) in list(state.asked.items()):
            if not os.path.lexists(path) or (before and look.files.get(path) == before):
                del state.asked[path]
        self._write_state()
        mounted = [path for path, node in look.nodes.items() if node.way == "mounted"]
        read_only = {*_inside((*mounted, *self._git_covers()), self._roots)}
        copies = tuple(self._copies_of(look))
        hidden = (*self.hidden.paths, *self.found.closed)
        unfollowed = frozenset((*state.asked, *self._find_unwatched()))
        folder = make_private_dir(self._own_copies) if self._has_mounts else None
        self.covers = Covers(tuple(sorted(read_only)), copies, folder, hidden, unfollowed)
        if only is None and judged is None:
            self._covered = self._find_covered()

    def _write_state(self) -> None:
        state = self._approved
        if not self._is_unclear:
            state.note_seen()
        state.first = self._walk.first
        text = state.model_dump_json().encode()
        if (text, self._stamp_of_state()) != self._written:
            replace_private_file(self._state_file, text)
            self._written = text, self._stamp_of_state()

    def _find_unwatched(self) -> Iterator[Path]:
        """Each ``.git`` that by now leads to a place which was none of the roots' at the start."""
        for place in map(git_place, self._walk.roots):
            if place is not None and not any(map(place.folder.is_relative_to, self._roots)):
                yield place.entry

    def _git_covers(self) -> Iterator[Path]:
        """What git follows, except in commands' own repositories, which they may remove."""
        if self._has_mounts:
            for entry in self.found.gits:
                if entry not in self._made and not self._walk.is_rebuilt(entry.parent):
                    covers = covers_of(entry, self._find_hooks_path())
                    yield from (path for path in covers if not self._is_followed(path))

    def _follow(self, path: Path, who: str) -> None:
        """Add an uppermost followed file or folder to what the walk found."""
        obeyed = self.found.obeyed
        is_around = any(root.is_relative_to(path) for root in self._roots)
        if (
            self._is_below(path)
            and not (is_around or self._is_followed(path))
            and os.path.lexists(path)
        ):
            for inner in [each for each in obeyed if path in each.parents]:
                del obeyed[inner]
            obeyed[path] = who

    def _is_followed(self, path: Path) -> bool:
        return not self.found.obeyed.keys().isdisjoint((path, *path.parents))

    def _find_covered(self) -> dict[Path, int]:
        """The inodes of what the wall covers, so that no command that begins now can change it.

        Without what has a second name, which may lie where a command can write.
        """
        covered: dict[Path, int] = {}
        if self._has_mounts:
            for path in (*self.covers.read_only, *(path for path, _ in self.covers.copies)):
                with suppress(OSError):
                    files = files_of(path)
                    if files is not None and all(file.lstat().st_nlink == 1 for file in files):
                        covered[path] = path.lstat().st_ino
        return covered

    def _who_changed(self, path: Path) -> bool | None:
        """Whether only the user can have changed `path`; None if they had a hand in it."""
        place = next((each for each in (path, *path.parents) if each in self._covered), None)
        if place is None:
            return False
        with suppress(OSError):
            if place.lstat().st_ino == self._covered[place]:
                return True
        self._covered[place] = 0  # another file may get the inode of a removed one
        return None

    def _copies_of(self, look: Look) -> Iterator[tuple[Path, Path]]:
        """The copy of each folder that has one, brought up to date."""
        covered = frozenset(map(os.path.realpath, self.hidden.paths))
        for path, node in look.nodes.items():
            if node.way == "copied":
                copy = self._copy_of(path)
                self._make_alike(path, copy, covered)
                yield path, copy

    def _copy_of(self, node: Path) -> Path:
        at = next(root for root in self._roots if node.is_relative_to(root))
        number = self._roots.index(at)
        return self._own_copies / str(number) / node.relative_to(at)

    def _make_alike(self, node: Path, copy: Path, covered: AbstractSet[str]) -> None:
        """Bring `copy` up to date. Commands can read it elsewhere, so `covered` files are empty."""
        if not copy.is_dir():
            make_private_dir(copy)
        blank = self._contents.keep(b"", 0o600)
        wanted = {
            below: blank if os.fspath(node / below) in covered else digest
            for below, digest in (self._digests_below(node) or {}).items()
        }
        self._synced[node] = wanted
        if self._digests_below(copy) == wanted:
            return
        trees = work_trees_in(copy)
        for there in list(copy.iterdir()):
            if there != trees:
                _remove(there)
        for below, digest in wanted.items():
            self._contents.write(copy / below, digest, (self._own_copies,))

    def _digests_below(self, folder: Path) -> dict[str, str] | None:
        files = files_of(folder)
        if files is None:
            return None
        return {os.fspath(f.relative_to(folder)): self._contents.digest_of(f) for f in files}

    async def _settle(self, *, only_jobs: bool = False, is_over: bool = True) -> list[Path]:
        """Do `_settle_now`, also if a command closed our own folders."""
        try:
            return await self._settle_now(only_jobs=only_jobs, is_over=is_over)
        except PermissionError:
            for folder in self._own:
                await asyncio.to_thread(reopen, folder)
            return await self._settle_now(only_jobs=only_jobs, is_over=is_over)

    async def _settle_now(self, *, only_jobs: bool, is_over: bool) -> list[Path]:
        """Accept what commands did, set it aside, or ask; the result becomes the approved state.

        Args:
            only_jobs: Whether only jobs ran since the last look.
            is_over: Whether the command has ended: else it may need the steps that it noted.
        """
        self._is_unsettled = True  # if this fails
        brought = list[Path]()
        done = await asyncio.to_thread(self._find_done, only_jobs)
        if done is None:
            return brought
        judged, changes, moved = done
        if not (changes or moved):
            self._is_unsettled = False
            return brought
        await self._versions.note(moved, are_persons=False)
        failures = list[OSError]()
        for change in changes:
            try:
                brought += await self._settle_change(change, judged, is_over=is_over)
            except OSError as error:  # nothing else stays in place because of it
                judged.aside.add(change.path)
                failures.append(error)
        known = None if changes or brought else judged.look
        await asyncio.to_thread(self._approve, None, known, judged)
        if failures:
            raise failures[0]
        self._is_unsettled = False
        return brought

    async def _settle_change(
        self, change: _Change, judged: _Judged, *, is_over: bool
    ) -> list[Path]:
        """Accept one change, set it aside, or ask; returns what git brought with it."""
        brought = list[Path]()
        if change.link is not None and not self._is_users_link(change.link, judged):
            pass  # nobody follows it without the link
        elif await self._may_stay(change):
            if change.source != change.path:
                brought = await asyncio.to_thread(self._bring, change)
                judged.ours.update(change.files)
        elif change.files[:1] == ((change.path, ""),):
            if change.control is not None:  # what was deleted in a copy comes back anyway
                await asyncio.to_thread(
                    self._contents.write, change.path, change.before, self._roots
                )
                judged.ours[change.path] = change.before
                self._notices.append(_RESTORED.format(change.path))
        elif await self._is_separated(change):
            pass
        elif change.may_be_users or (change.control == "step" and not is_over):
            question = Question(change.who, change.before)
            self._approved.asked.setdefault(change.path, question)
        else:
            judged.aside.add(change.path)
            with suppress(FileNotFoundError):  # another program was faster
                held = await asyncio.to_thread(self._put_aside, change, judged.ours)
                self._pending.append(held)
        return brought

    def _find_done(
        self, only_jobs: bool
    ) -> tuple[_Judged, list[_Change], Mapping[Path, RefsStamp]] | None:
        """The state, what commands did, and where references moved.

        If nothing, the current state is adopted at once. None if a working folder is missing: when
        it is back, what commands did in it is judged.
        """
        only_jobs |= self._is_moved()  # what is new there is not from commands
        if self._find_missing():
            return None
        before = set(self.found.gits)
        self._bring_work_trees()
        look = self._look()
        moved = self._versions.find_moved(self.found.gits)
        self._made |= set(self.found.gits) - before
        changes = [
            *self._new_nodes(look, only_jobs),
            *self._find_changed_files(look, only_jobs),
            *self._find_changed_copies(look),
            *(() if only_jobs else self._find_deleted_controls(look)),
        ]
        # Links first. Git makes an index again, when HEAD and the settings are in order.
        changes.sort(key=lambda change: (change.path.name == INDEX, change.link is not None))
        judged = _Judged(look, only_jobs=only_jobs)
        if not (changes or moved):
            self._approve(None, look, judged)
        return judged, changes, moved

    def _bring_work_trees(self) -> None:
        """Move the work trees that commands made in a copy to where they belong, to be judged."""
        for path, copy in self.covers.copies:
            made, place = work_trees_in(copy), path / WORK_TREES
            if made is None:
                continue
            moves = {made: place}
            if os.path.lexists(place):  # others made some meanwhile
                moves = {each: place / each.name for each in entries_of(made)}
            for each, target in moves.items():
                if not os.path.lexists(target):
                    self._covered.pop(path, None)
                    with suppress(OSError), folder_of(each, (self._own_copies,)) as folder:
                        move_in(folder, each.name, target, self._roots)

    def _new_nodes(self, look: Look, only_jobs: bool) -> Iterator[_Change]:
        for path, node in look.nodes.items():
            if path not in self._approved.nodes:
                may_be_users = only_jobs or self._who_changed(path) is None
                who = _obeys(node.who)
                if self._was_followed(path):
                    yield from self._changes_in(path, who, may_be_users)
                    continue
                files = files_of(path)
                known = tuple((file, self._contents.digest_of(file)) for file in files or ())
                files_to_know = known if files else ((path, OTHER),)
                yield _Change(
                    path,
                    path,
                    who,
                    files=files_to_know,
                    may_be_users=may_be_users,
                    link=node.link,
                )

    def _was_followed(self, path: Path) -> bool:
        """Whether a new node lies directly in an approved one, or some lie directly in it.

        That happens when an agent's work trees come or go.
        """
        nodes = self._approved.nodes
        return path.parent in nodes or any(path == each.parent for each in nodes)

    def _changes_in(self, node: Path, who: str, may_be_users: bool) -> Iterator[_Change]:
        """What differs in the new `node` from what was known in it.

        What is too large for that is new as a whole, unless something in it was known.
        """
        known = self._approved.nodes | self._approved.files.keys()
        around = {place for path in known for place in path.parents}
        pending, trees = [node], work_trees_in(node)
        for path in pending:
            files = files_of(path) if is_folder(path) and not is_link(path) else [path]
            for file in files or ():
                before, digest = self._approved.files.get(file, ""), self._contents.digest_of(file)
                if digest != before:
                    yield _Change(
                        file, file, who, before, ((file, digest),), may_be_users=may_be_users
                    )
            if files is None and path in around:
                pending += (each for each in entries_of(path) if each != trees)
            elif files is None and path not in known:
                yield _Change(path, path, who, files=((path, OTHER),), may_be_users=may_be_users)

    def _find_changed_files(self, look: Look, only_jobs: bool) -> Iterator[_Change]:
        """Changes in files that existed before, or are git's; no program follows a deleted one.

        Mounted ones too: the mount disappears when the user's editor or git replaces the file.
        """
        for path, digest in look.files.items():
            before = self._approved.files.get(path, "")
            if not digest or digest == before:
                continue
            kind, node = look.controls.get(path), look.node_of(path)
            if kind is not None:  # the `.git` that leads elsewhere is held
                is_ours = any(path.is_relative_to(root) for root in self._roots)
                was = self._contents.bytes_of(before)
                who = why_obeyed(path, kind, self._roots, was) if is_ours else ""
            else:
                is_known = node in self._approved.nodes
                who = _obeys(look.nodes[node].who) if node is not None and is_known else ""
            if who and (is_users := self._who_changed(path)) is not True:
                may_be = only_jobs or is_users is None
                yield _Change(path, path, who, before, ((path, digest),), kind, may_be)

    def _find_changed_copies(self, look: Look) -> Iterator[_Change]:
        for path, copy in self.covers.copies:
            followed = (node for each, node in look.nodes.items() if each.is_relative_to(path))
            who = _obeys(next((node.who for node in followed), "the outside"))
            now = self._digests_below(copy)
            if now is None:
                yield _Change(path, copy, who, files=((path, OTHER),))
                continue
            before = self._synced[path]
            # What is gone comes first: a link may be in its folder's place.
            for below in (*sorted(before.keys() - now.keys()), *sorted(now)):
                old, new = before.get(below, ""), now.get(below, "")
                if new != old:
                    yield _Change(path / below, copy / below, who, old, ((path / below, new),))

    def _find_deleted_controls(self, look: Look) -> Iterator[_Change]:
        """Hooks and settings that are gone from a repository: without one, git does less."""
        gone = self._approved.files.keys() - look.files.keys()
        for path, kind in controls_at(gone, self.found.gits):
            if (before := self._approved.files[path]) != OTHER:
                yield _Change(path, path, "git does less without it", before, ((path, ""),), kind)

    def _is_users_link(self, link: Path, judged: _Judged) -> bool:
        return judged.stays(link) and not self._approved.is_asked(link)

    async def _is_separated(self, change: _Change) -> bool:
        """Whether it was a second name, and is none now: git writes into nothing else."""
        return change.control == "shared" and await asyncio.to_thread(
            separate, change.path, self._roots
        )

    async def _may_stay(self, change: _Change) -> bool:
        if change.control is not None:
            return False
        for path, digest in change.files:
            if digest in self._approved.seen.get(path, ()):
                continue
            # Deleted: only what a commit still has is deleted outside, too.
            content = self._contents.bytes_of(digest or change.before)
            if content is None or not await self._versions.has(path, content):
                return False
        return True

    def _bring(self, change: _Change) -> list[Path]:
        """Apply outside what a command did to a copy, unless the user changed it differently."""
        ((path, digest),) = change.files
        if self._contents.digest_of(path) != change.before:
            return []
        try:
            if digest:
                self._contents.write(path, digest, self._roots)
            else:
                with folder_of(path, self._roots) as folder:
                    os.unlink(path.name, dir_fd=folder)
                self._remove_empty(path.parent)
        except OSError:
            return []
        return [path]

    def _remove_empty(self, folder: Path) -> None:
        """Remove `folder` and those around it while they are empty, as git does."""
        with suppress(OSError):
            while True:
                with folder_of(folder, self._roots) as around:
                    os.rmdir(folder.name, dir_fd=around)
                folder = folder.parent

    def _put_aside(self, change: _Change, ours: dict[Path, str]) -> HeldFile:
        """Set aside what `change` did; what is written instead is added to `ours`."""
        path, before = change.path, self._contents.of(change.before)
        if change.source != path:
            return self._store.set_aside(path, change.who, before, change.source)
        below = (place for place in reversed(path.parents) if self._is_below(place))
        if link := next(filter(Path.is_symlink, below), None):
            return self._store.set_aside(link, change.who)
        if change.control in ("config", "step") and not path.is_symlink():
            was, mode = before or (None, 0o644)
            plain = plain_content(path, change.control, was)
            if plain or before is not None:
                ours[path] = self._contents.keep(plain, mode)
                return self._store.set_aside(path, change.who, (plain, mode))
        held = self._store.set_aside(path, change.who, before)
        if change.control == "irregular" and path.name == INDEX:
            return self._replace_index(held)
        if change.before.startswith(LINK):
            self._contents.write(path, change.before, self._roots)
        if change.files == ((path, OTHER),):
            for file, digest in self._approved.files.items():
                if path in file.parents:
                    self._contents.write(file, digest, self._roots)
                    ours[file] = digest
        return held

    def _replace_index(self, held: HeldFile) -> HeldFile:
        """Leave git an index: without one, each file would count as deleted."""
        path = held.path
        if self._approved.asked or not self._tracked.make_index(path.parent):
            return held
        why = f"{held.who}; git made it again from the last commit, so nothing is staged"
        now = self._contents.of(self._contents.digest_of(path))
        return self._store.describe_at(held.aside, path, why, now)

    def _is_below(self, path: Path) -> bool:
        return any(root in path.parents for root in self._roots)


@contextmanager
def _convert_errors() -> Generator[None]:
    """Convert disk errors to errors for the model.

    Raises:
        ToolError: Instead of `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise ToolError(f"Commands cannot be watched in the sandbox: {error}") from error


def _inside(paths: Iterable[Path], roots: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        with suppress(OSError, RuntimeError):
            resolved = path.resolve(strict=True)
            if resolved not in roots and any(resolved.is_relative_to(root) for root in roots):
                yield resolved


def _take_part(state: Approved, look: Look, only: Path) -> None:
    """Replace `only` in `state` by its state in `look`."""

    def is_part(path: Path) -> bool:
        return path.is_relative_to(only) or only.is_relative_to(path)

    state.nodes = {path for path in state.nodes if not is_part(path)}
    state.nodes |= {path for path in look.nodes if is_part(path)}
    state.files = {path: digest for path, digest in state.files.items() if not is_part(path)}
    state.files |= {path: digest for path, digest in look.files.items() if is_part(path)}


def _take_judged(state: Approved, now: Look, judged: _Judged) -> None:
    """Take `now` into `state` without what a running command did since `judged.look`.

    Otherwise a file that is written again and again would count as the user's.
    """
    was, files = state.files, dict[Path, str]()
    for path, digest in now.files.items():
        allowed = {was.get(path), judged.ours.get(path)}
        if judged.stays(path):
            allowed.add(judged.look.files.get(path))
        if digest in allowed:
            files[path] = digest
        elif path in was:
            files[path] = was[path]
    for path in was.keys() - files.keys():  # nobody knows what is there now
        if any(now.files.get(each) == OTHER for each in path.parents):
            files[path] = was[path]
    state.files = files
    state.nodes = {
        path
        for path in now.nodes
        if path in state.nodes or (path in judged.look.nodes and path not in judged.aside)
    }


def _obeys(who: str) -> str:
    return f"{who} obeys it"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_folder(path)
    else:
        path.unlink()
