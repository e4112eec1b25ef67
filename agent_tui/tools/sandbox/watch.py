"""Protects files that outside programs follow, whatever commands in the wall do.

What exists is protected in one of three ways (`obeyed_state.Protection`). A read-only mount is the
simplest, but git cannot change such a file: a merge or rebase that must do so fails half-way. So a
*folder* (``.vscode``) is replaced inside by a copy that commands may change, and a *text* that runs
nothing itself (``AGENTS.md``) is only compared. The changes are examined after each command.
Versions that the user's commits have, or that were in place before, are accepted; anything else is
set aside, and the previous content restored. Changes in a copied or mounted place are not visible
outside before that.

What does not exist yet cannot be protected by a mount: it is searched for after each command. New
git repositories stay, except hooks, and settings that could run programs.

The baseline is on disk while commands run. After ``kill -9`` the next conversation in the folder
compares with it.
"""

import asyncio
import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.paths import make_private_dir
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import git_entry
from agent_tui.tools.git.command import object_id
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.sandbox.beneath import MOST_BYTES, folder_of, make_folders, write_at
from agent_tui.tools.sandbox.git_controls import (
    covers_of,
    plain_settings,
    repositories_of,
    why_obeyed,
)
from agent_tui.tools.sandbox.held import HeldFile, HeldStore
from agent_tui.tools.sandbox.hidden import HiddenFiles
from agent_tui.tools.sandbox.known_versions import KnownVersions, RefsStamp
from agent_tui.tools.sandbox.obeyed_state import (
    LINK,
    OTHER,
    BusyMarker,
    Contents,
    KeptState,
    Look,
    files_of,
    look_at,
    path_of,
    read_state,
    references_of,
    state_of,
    with_seen,
    write_state,
)
from agent_tui.tools.sandbox.project_walk import ProjectWalk, WalkFindings


@dataclass(frozen=True, slots=True)
class Settled:
    """What was done after a command.

    Args:
        held: Set aside until the user decides.
        brought: Files that git changed to a version from the user's commits.
    """

    held: tuple[HeldFile, ...] = ()
    brought: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Covers:
    """What a wall must mount.

    Args:
        read_only: What cannot be changed inside.
        copies: Folders, and the copy that replaces each inside.
        hidden: Files with keys.
    """

    read_only: tuple[Path, ...] = ()
    copies: tuple[tuple[Path, Path], ...] = ()
    hidden: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class _Change:
    """One change made by commands.

    Args:
        path: What it affects; `source` is where it is now, elsewhere for a copy.
        who: Why it is set aside.
        before: The digest of what was there; empty for nothing.
        files: What must be known for it to stay: paths and digests.
        is_control: Whether it is one of git's own files, which no commit brings.
    """

    path: Path
    source: Path
    who: str
    before: str = ""
    files: tuple[tuple[Path, str], ...] = ()
    is_control: bool = False


@dataclass(frozen=True, slots=True)
class _Done:
    """What commands did; in `moved` are repositories whose references may have moved."""

    look: Look
    changes: Sequence[_Change]
    moved: Mapping[Path, RefsStamp]
    has_new_index: bool

    @property
    def is_any(self) -> bool:
        """Whether anything needs a closer look."""
        return bool(self.changes or self.moved or self.has_new_index)


@dataclass(slots=True)
class _Judged:
    """The decision on what commands did.

    Args:
        look: The state that was judged.
        aside: Which of it was set aside.
        ours: What we wrote in the meantime: the digest of each file.
    """

    look: Look
    aside: set[Path] = field(default_factory=set[Path])
    ours: dict[Path, str] = field(default_factory=dict[Path, str])


class ObeyedWatch:
    """Watches the working folders of one conversation.

    Call `note` before a command, `hold` after it; several commands may overlap. Between the two,
    other programs may do the same in the same folder.

    Args:
        roots: The working folders, the workspace first.
        folder: Our folder for these roots; hidden from commands.
        keeper: Starts git, outside the wall.
        environ: The environment of commands.
        may_show: Whether a rule of the user lets commands see a file with keys.
        has_mounts: Whether the wall can protect files in writable folders.

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
        may_show: Callable[[Path], bool] = lambda _path: False,
        has_mounts: bool = True,
    ) -> None:
        self._walk = ProjectWalk(roots)
        self._entries_above = tuple(_entries_above(self._walk.roots))
        gits = (git for entry in self._entries_above for git in repositories_of(entry))
        self._roots = tuple(dict.fromkeys((*self._walk.roots, *gits)))
        self._folder = folder
        self._contents = Contents(folder / "versions", (*self._roots, folder / "copies"))
        self._store = HeldStore(folder / "held", self._roots)
        self._versions = KnownVersions(keeper, environ, self._walk.roots)
        self._has_mounts = has_mounts
        self._own_copies = folder / "copies" / f"{os.getpid()}-{os.urandom(4).hex()}"
        self._running = 0
        self._marker = BusyMarker(folder / "running", self._own_copies.name)
        self._baseline: Look = Look()
        self._seen: dict[Path, tuple[str, ...]] = {}
        self._made: set[Path] = set()
        self._refused: set[tuple[Path, str]] = set()
        self._state: KeptState = KeptState()
        self._state_stamp: tuple[int, int] = (0, 0)
        self._pending: list[HeldFile] = []
        self._turn = asyncio.Lock()
        self.hidden = HiddenFiles(may_show, environ, keeper)
        self.found = WalkFindings()
        self.covers = Covers()
        self._synced: dict[Path, dict[str, str]] = {}

    async def recover(self) -> tuple[HeldFile, ...]:
        """Compare with the baseline if a program was killed while commands ran.

        Call this when a conversation begins. What is held is also part of the next `hold`.

        Raises:
            ToolError: Our folder cannot be used.
        """
        async with self._turn:
            before = len(self._pending)
            with _convert_errors():
                if await asyncio.to_thread(self._take_up):
                    await self._settle()
                if not self._running:
                    self._marker.say_idle()
            return tuple(self._pending[before:])

    async def note(self) -> None:
        """Note that a command begins: the current state is the user's, if nothing else runs.

        Raises:
            ToolError: Our folder cannot be used, so no command may run.
        """
        async with self._turn:
            with _convert_errors():
                is_persons, moved = await asyncio.to_thread(self._begin)
                if not is_persons:
                    await self._settle()
                elif moved:
                    await self._versions.note(moved, are_persons=True)
                    await asyncio.to_thread(self._rebase)
            self._running += 1

    async def hold(self, *, is_over: bool = True, is_told: bool = True) -> Settled:
        """Judge what a command did that ended, or continues as a job.

        Args:
            is_over: False if it continues: then call again at its end.
            is_told: Whether the result is reported; otherwise held files are in the next one.

        Raises:
            ToolError: Our folder cannot be used.
        """
        async with self._turn:
            with _convert_errors():
                brought = await self._settle()
                self._running -= is_over
                if not self._running:
                    self._marker.say_idle()
            if not is_told:
                return Settled()
            held, self._pending = tuple(self._pending), []
            return Settled(held, tuple(brought))

    async def release(self, held: HeldFile) -> None:
        """Put a held file in place, as the user was shown it.

        Raises:
            ToolError: It cannot be done; the text says why.
        """
        async with self._turn:
            await asyncio.to_thread(self._store.put_in_place, held)
            with _convert_errors():
                await asyncio.to_thread(self._rebase, held.path)

    async def accept(self, paths: Iterable[Path]) -> None:
        """Accept that our own tools wrote `paths` with approval: nothing of it is held."""
        async with self._turn:
            with _convert_errors():
                for path in paths:
                    await asyncio.to_thread(self._rebase, path)

    def close(self) -> None:
        """Close the watch once no command runs or will run."""
        self._marker.remove()
        shutil.rmtree(self._own_copies, ignore_errors=True)

    def _begin(self) -> tuple[bool, Mapping[Path, RefsStamp]]:
        """Whether the current state is the user's, and for which repositories git must be called.

        If for none, the state is adopted at once: each thread switch costs a command 0.1 ms.
        """
        is_persons = not (self._take_up() or self._running)
        moved = self._versions.find_moved()
        if is_persons and not moved:
            self._rebase()
        return is_persons, moved

    def _take_up(self) -> bool:
        """Read the state stored on disk; returns whether some of it may not be the user's."""
        self._marker.say_busy()  # in case this program is killed
        has_state = self._stamp_of_state() == self._state_stamp
        if not has_state and (state := read_state(self._state_file)) is not None:
            self._use(state)
            has_state = True
        return self._marker.is_another_busy() and has_state

    @property
    def _state_file(self) -> Path:
        return self._folder / "baseline.json"

    def _use(self, state: KeptState) -> None:
        self._baseline = Look(
            nodes={path_of(name): "" for name in state.nodes},
            contents={path_of(name): digest for name, digest in state.contents.items()},
            control_contents={path_of(name): digest for name, digest in state.controls.items()},
        )
        self._seen = {path_of(name): digests for name, digests in state.seen.items()}
        self._versions.references = references_of(state)
        self._walk.first = tuple(str(path_of(name)) for name in state.first)

    def _stamp_of_state(self) -> tuple[int, int]:
        try:
            status = self._state_file.stat()
        except OSError:
            return 0, 1
        return status.st_ino, status.st_mtime_ns

    def _look(self) -> Look:
        self.found = self._walk.look()
        self.found.gits.extend(self._entries_above)
        return look_at(self.found, self._contents, has_mounts=self._has_mounts)

    def _rebase(
        self, only: Path | None = None, look: Look | None = None, judged: _Judged | None = None
    ) -> None:
        """Make the current state the baseline.

        Args:
            only: Only for this file or folder.
            look: The current state, if known.
            judged: Commands made it; what they did since then is not accepted.
        """
        look = look or self._look()
        self.hidden.take(self.found.secrets, by_commands=judged is not None)
        if only is not None:
            look = _with_part(self._baseline, look, only)
        ordered = look if judged is None else _in_order(look, self._baseline, judged)
        self._seen = with_seen(self._seen, ordered)
        state = state_of(ordered, self._seen, self._versions.references, self._walk.first)
        if state != self._state or self._stamp_of_state() != self._state_stamp:
            write_state(self._state_file, state)
            self._state, self._state_stamp = state, self._stamp_of_state()
        self._baseline = ordered
        self.covers = Covers(
            tuple(sorted({*_find_mounted(look, self._roots), *self._git_covers()})),
            tuple(self._copies_of(look)),
            self.hidden.paths,
        )

    def _git_covers(self) -> Iterator[Path]:
        """What git follows, except in commands' own repositories, which they may remove."""
        if self._has_mounts:
            for entry in self.found.gits:
                if entry not in self._made:
                    yield from _inside(covers_of(entry), self._roots)

    def _copies_of(self, look: Look) -> Iterator[tuple[Path, Path]]:
        """The copy of each folder that has one, brought up to date."""
        for node, way in look.ways.items():
            if way == "copied":
                copy = self._copy_of(node)
                self._make_alike(node, copy)
                yield node, copy

    def _copy_of(self, node: Path) -> Path:
        at = next(root for root in self._roots if node.is_relative_to(root))
        number = self._roots.index(at)
        return self._own_copies / str(number) / node.relative_to(at)

    def _make_alike(self, node: Path, copy: Path) -> None:
        if not copy.is_dir():
            make_private_dir(copy)
        wanted = self._digests_below(node) or {}
        self._synced[node] = wanted
        if self._digests_below(copy) == wanted:
            return
        for there in list(copy.iterdir()):
            _remove(there)
        for below, digest in wanted.items():
            if (kept := self._contents.of(digest)) is not None:
                target = copy / below
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with folder_of(target, (self._own_copies,)) as folder:
                    write_at(folder, target.name, *kept)

    def _digests_below(self, folder: Path) -> dict[str, str] | None:
        files = files_of(folder)
        if files is None:
            return None
        return {os.fspath(f.relative_to(folder)): self._contents.digest_of(f) for f in files}

    async def _settle(self) -> list[Path]:
        """Accept or set aside what commands did; the resulting state becomes the baseline."""
        done = await asyncio.to_thread(self._look_for_changes)
        judged, brought = _Judged(done.look), list[Path]()
        if not done.is_any:
            return brought
        await self._versions.note(done.moved, are_persons=False)
        changes = done.changes
        for change in changes:
            if await self._may_stay(change):
                if change.source != change.path:
                    brought += await asyncio.to_thread(self._bring, change)
                    judged.ours.update(change.files)
            elif change.files[:1] != ((change.path, ""),):  # what was deleted in a copy is restored
                judged.aside.add(change.path)
                with suppress(FileNotFoundError):  # another program was faster
                    self._pending.append(await asyncio.to_thread(self._put_aside, change, judged))
        if done.has_new_index:
            brought += await self._check_out_mounted(judged)
        known = None if changes or brought else done.look
        await asyncio.to_thread(self._rebase, None, known, judged)
        return brought

    def _look_for_changes(self) -> _Done:
        """What commands did; if it is nothing, the current state is adopted at once."""
        moved = self._versions.find_moved()
        look, changes = self._changes()
        done = _Done(look, changes, moved, has_new_index=self._versions.has_new_index())
        if not done.is_any:
            self._rebase(None, look, _Judged(look))
        return done

    def _changes(self) -> tuple[Look, list[_Change]]:
        before = set(self.found.gits)
        look = self._look()
        self._made |= set(self.found.gits) - before
        return look, [
            *self._new_nodes(look),
            *self._find_changed_files(look),
            *self._find_changed_copies(look),
            *self._find_changed_controls(look),
        ]

    def _new_nodes(self, look: Look) -> Iterator[_Change]:
        for node, who in look.nodes.items():
            if node not in self._baseline.nodes:
                files = files_of(node)
                known = tuple((path, self._contents.digest_of(path)) for path in files or ())
                yield _Change(node, node, _obeys(who), files=known if files else ((node, OTHER),))

    def _find_changed_files(self, look: Look) -> Iterator[_Change]:
        """Changes in compared files that existed before; no program follows a deleted one."""
        for path, digest in look.contents.items():
            node = next((n for n in (path, *path.parents) if n in look.nodes), path)
            before = self._baseline.contents.get(path, "")
            is_compared = node in self._baseline.nodes and look.ways.get(node) != "copied"
            if is_compared and digest and digest != before:
                who = _obeys(look.nodes[node])
                yield _Change(path, path, who, before, ((path, digest),))

    def _find_changed_copies(self, look: Look) -> Iterator[_Change]:
        for node, copy in self.covers.copies:
            who = _obeys(look.nodes.get(node, "the outside"))
            now = self._digests_below(copy)
            if now is None:
                yield _Change(node, copy, who, files=((node, OTHER),))
                continue
            before = self._synced[node]
            for below in sorted({*now, *before}):
                old, new = before.get(below, ""), now.get(below, "")
                if new != old:
                    path = node / below
                    yield _Change(path, copy / below, who, old, ((path, new),))

    def _find_changed_controls(self, look: Look) -> Iterator[_Change]:
        for path, kind in look.controls.items():
            before = self._baseline.control_contents.get(path, "")
            is_ours = any(path.is_relative_to(root) for root in self._roots)
            if look.control_contents[path] == before or not is_ours:
                continue  # the `.git` that leads there is held
            # Mounted ones too: the mount disappears when the user's git replaces the file.
            if why := why_obeyed(path, kind, self._roots, self._contents.bytes_of(before)):
                yield _Change(path, path, why, before, is_control=True)

    async def _may_stay(self, change: _Change) -> bool:
        if change.is_control:
            return False
        for path, digest in change.files:
            if digest in self._seen.get(path, ()):
                continue
            # Deleted: only what a commit still has is deleted outside, too.
            content = self._contents.bytes_of(digest or change.before)
            if content is None or not await self._versions.has(path, content):
                return False
        return True

    def _bring(self, change: _Change) -> list[Path]:
        """Apply outside what a command did to a copy, unless the user changed it differently."""
        ((path, digest),) = change.files
        kept = self._contents.of(digest)
        if self._contents.digest_of(path) != change.before:
            return []
        try:
            if kept is not None:
                make_folders(path.parent, self._roots)
                with folder_of(path, self._roots) as folder:
                    write_at(folder, path.name, *kept)
            else:
                with folder_of(path, self._roots) as folder:
                    os.unlink(path.name, dir_fd=folder)
        except OSError:
            return []
        return [path]

    def _put_aside(self, change: _Change, judged: _Judged) -> HeldFile:
        if change.source != change.path:
            return self._keep_of_copy(change)
        before = self._contents.of(change.before)
        is_config = change.is_control and change.path.name in ("config", "config.worktree")
        if is_config and not change.path.is_symlink():
            was, mode = before or (None, 0o644)
            plain = plain_settings(change.path, was).encode("utf-8", "surrogateescape")
            judged.ours[change.path] = self._contents.keep(plain, mode)
            return self._store.take_back(change.path, change.who, plain, mode)
        if before is not None:
            return self._store.take_back(change.path, change.who, *before)
        held = self._store.move(change.path, change.who)
        if change.before.startswith(LINK):
            target = os.fsdecode(bytes.fromhex(change.before.removeprefix(LINK)))
            with folder_of(change.path, self._roots) as folder:
                os.symlink(target, change.path.name, dir_fd=folder)
        return held

    def _keep_of_copy(self, change: _Change) -> HeldFile:
        before = self._contents.of(change.before)
        return self._store.keep(
            change.path, change.who, before[0] if before else None, change.source
        )

    async def _check_out_mounted(self, judged: _Judged) -> list[Path]:
        """Write the versions that a checkout could not write: ``git`` exits with 0 anyway.

        That is the case if index and commit agree on one version, but another committed one is
        there. A version that only commands committed is set aside.
        """
        brought: list[Path] = []
        for node, way in list(self._baseline.ways.items()):
            if way != "mounted" or not node.is_file() or node.is_symlink():
                continue
            id = await self._versions.find_checked_out(node)
            now = await asyncio.to_thread(_read, node)
            if (
                not id
                or now is None
                or object_id(now, like=id) == id
                or (node, id) in self._refused
            ):
                continue
            content = await self._versions.content(node, id)
            ids = await self._versions.ids(node)
            if content is None or len(content) > MOST_BYTES or object_id(now, like=id) not in ids:
                continue
            if id in ids:
                judged.ours[node] = await asyncio.to_thread(self._write, node, content)
                brought.append(node)
            else:
                self._refused.add((node, id))
                who = _obeys(self._baseline.nodes[node])
                held = await asyncio.to_thread(self._store.keep_bytes, node, who, now, content)
                self._pending.append(held)
        return brought

    def _write(self, path: Path, content: bytes) -> str:
        """Write `content`, and return its digest."""
        mode = stat.S_IMODE(path.lstat().st_mode)
        with folder_of(path, self._roots) as folder:
            write_at(folder, path.name, content, mode)
        return self._contents.keep(content, mode & 0o777)


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


def _entries_above(roots: Sequence[Path]) -> Iterator[Path]:
    """The ``.git`` of each root that is in a repository without being its top."""
    for root in roots:
        entry = git_entry(root)
        if entry is not None and entry.parent not in roots:
            yield entry


def _find_mounted(look: Look, roots: Sequence[Path]) -> Iterator[Path]:
    """What is mounted read-only in `look`, links followed."""
    for node, way in look.ways.items():
        if node.is_symlink():
            yield from _inside([node], roots)
        elif way == "mounted":  # a walk follows no links, so none is on the way
            yield node


def _inside(paths: Iterable[Path], roots: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        with suppress(OSError, RuntimeError):
            resolved = path.resolve(strict=True)
            if resolved not in roots and any(resolved.is_relative_to(root) for root in roots):
                yield resolved


def _in_order(now: Look, before: Look, judged: _Judged) -> Look:
    """`now` without what a running command did since `judged.look`, which is yet to be judged.

    Otherwise a file that is written again and again would count as the user's.
    """
    seen = judged.look
    stayed = judged.aside.isdisjoint

    def keep_allowed(
        now: dict[Path, str], was: dict[Path, str], seen: dict[Path, str]
    ) -> dict[Path, str]:
        found: dict[Path, str] = {}
        for path, digest in now.items():
            allowed = {was.get(path), judged.ours.get(path)}
            if stayed((path, *path.parents)):
                allowed.add(seen.get(path))
            if digest in allowed:
                found[path] = digest
            elif path in was:
                found[path] = was[path]
        return found

    return replace(
        now,
        nodes={
            node: who
            for node, who in now.nodes.items()
            if node in before.nodes or (node in seen.nodes and stayed((node,)))
        },
        contents=keep_allowed(now.contents, before.contents, seen.contents),
        control_contents=keep_allowed(
            now.control_contents, before.control_contents, seen.control_contents
        ),
    )


def _with_part(before: Look, now: Look, only: Path) -> Look:
    """`before`, with `only` replaced by its state in `now`."""

    def is_part(path: Path) -> bool:
        return path.is_relative_to(only) or only.is_relative_to(path)

    look = Look(ways=now.ways, controls=now.controls)
    for mine, old, new in (
        (look.nodes, before.nodes, now.nodes),
        (look.contents, before.contents, now.contents),
        (look.control_contents, before.control_contents, now.control_contents),
    ):
        mine.update({path: of for path, of in old.items() if not is_part(path)})
        mine.update({path: of for path, of in new.items() if is_part(path)})
    return look


def _obeys(who: str) -> str:
    return f"{who} obeys it"


def _read(path: Path) -> bytes | None:
    try:
        return read_regular_file(path) if path.stat().st_size <= MOST_BYTES else None
    except OSError:
        return None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
