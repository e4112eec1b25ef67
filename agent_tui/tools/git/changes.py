"""Finds which files a command changed, by comparing git's reports before and after it."""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from agent_tui.messages import FileTouches
from agent_tui.tools.git.command import GitSilentError
from agent_tui.tools.git.status import (
    TreeDifference,
    WorkTree,
    diff_trees,
    has_content,
    nearest_git,
    read_work_tree,
    top_folder,
)
from agent_tui.tools.processes.keeper import ProcessKeeper

LOOK_S = 1.0
"""Seconds for which a command's start may be delayed."""

COMPARE_S = 2.0
"""Seconds for which its result may be delayed."""

MAX_CHANGED_FILES = 200
"""The most files reported: a command that changes more (a checkout, an unpacking) would hide the
files that the work is about."""

_CHANCES = 2
"""The first look at a large work tree may be slow on a cold disk; after another, looks stop."""

_Stamp: TypeAlias = tuple[int, int, int]
"""A file's change time in nanoseconds, size in bytes and inode; differs if the file changed."""


_TICK_S = 0.001
"""Seconds between checks whether the coarse clock has ticked, which it does every 1-10 ms."""

_COARSE_CLOCK = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
"""``CLOCK_REALTIME_COARSE``: Linux stamps files by it, or by the precise clock since 6.13."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a work tree at the start of a command or shortly before.

    Args:
        cwd: Where the command runs.
        environ: Its environment.
        marker: The ``.git`` that led to the work tree, None if the environment names it.
        tree: What git reported.
        stamps: Stamps of the files that were dirty then (None: missing).
        begun_ns: When the command begins, by this machine's clock.
    """

    cwd: Path
    environ: Mapping[str, str]
    marker: Path | None
    tree: WorkTree
    stamps: Mapping[str, _Stamp | None]
    begun_ns: int = 0


class GitChanges:
    """Checks the work tree after each command, and remembers where that takes too long.

    The look after one command also serves as the one before the next, as git is slow with many
    files. Changes between the two are told from the command's by ``ctime``, the kernel's inode
    change time, which no program can set.

    A file counts if its bytes in the work tree changed: a new one as written, any other, or a
    deleted one, as edited; a renamed file is both. Files that were only committed, staged or
    unstaged do not count; those that git stops ignoring do. Not detected: ignored files, those of
    submodules and other repositories, and names that are not UTF-8. The user's changes while the
    command runs are attributed to the command; those between commands are not, nor is reverting
    them to the committed state. A committed file that the user deletes between commands is, if the
    command changes the folder that held it.
    """

    def __init__(
        self, keeper: ProcessKeeper, is_trusted: Callable[[Path], bool] = lambda _cwd: True
    ) -> None:
        """Use git calls that `keeper` starts.

        Args:
            keeper: Starts processes.
            is_trusted: Whether git may run in a folder; called before each snapshot.
        """
        self._keeper = keeper
        self._is_trusted = is_trusted
        self._slow_looks: Counter[Path] = Counter()
        self._newest: dict[Path, Snapshot] = {}

    async def snapshot(self, cwd: Path, environ: Mapping[str, str]) -> Snapshot | None:
        """The state before a command runs in `cwd`: the latest look, or a first one.

        None if git reports no repository, or the folder is not trusted.

        Never raises for anything git does, and ends after `LOOK_S` seconds.
        """
        if self._slow_looks[cwd] >= _CHANCES or not self._is_trusted(cwd):
            return None
        known = self._newest.pop(cwd, None)
        marker = await asyncio.to_thread(nearest_git, cwd, environ)
        if known is None or known.environ != environ or known.marker != marker:
            try:
                async with asyncio.timeout(LOOK_S):
                    root = await top_folder(self._keeper, cwd, environ)
                    tree = await read_work_tree(self._keeper, root, environ)
                    stamps = await asyncio.to_thread(_stamps, tree)
            except TimeoutError:
                self._slow_looks[cwd] += 1
                return None
            except GitSilentError:
                return None
            known = Snapshot(cwd, environ, marker, tree, stamps)
        return replace(known, begun_ns=await asyncio.to_thread(_moment_ns))

    async def since(self, before: Snapshot | None) -> FileTouches:
        """The absolute paths of the files that changed since `before`; none if git cannot tell.

        Never raises for anything git does, and ends after `COMPARE_S` seconds.
        """
        if before is None:
            return FileTouches()
        root, environ = before.tree.root, before.environ
        try:
            async with asyncio.timeout(COMPARE_S):
                after = await read_work_tree(self._keeper, root, environ)
                moved = await diff_trees(self._keeper, root, before.tree.head, after.head, environ)
                changes = await asyncio.to_thread(_changes, before, after, moved)
                stamps = await asyncio.to_thread(_stamps, after)
        except TimeoutError:
            self._slow_looks[before.cwd] += 1
            return FileTouches()
        except GitSilentError:
            return FileTouches()
        self._slow_looks.pop(before.cwd, None)
        self._newest[before.cwd] = replace(before, tree=after, stamps=stamps)
        return changes


def _moment_ns() -> int:
    """A time after all past and before all future changes, by the clock that stamps files.

    Blocks for some milliseconds.
    """
    now_ns = time.time_ns()
    while time.clock_gettime_ns(_COARSE_CLOCK) < now_ns:
        time.sleep(_TICK_S)
    return now_ns


def _stamps(tree: WorkTree) -> dict[str, _Stamp | None]:
    return {name: _stamp(tree.root / name) for name in tree.dirty}


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _changes(before: Snapshot, after: WorkTree, moved: Sequence[TreeDifference]) -> FileTouches:
    files = (one for one in moved if not one.is_of_submodule)
    commits = {one.name: (one.before_id, one.after_id) for one in files}
    written: list[str] = []
    edited: list[str] = []
    for name in sorted({*before.stamps, *after.dirty, *commits}):
        path = after.root / name
        if name in before.stamps:
            existed = before.stamps[name] is not None
            is_changed = _stamp(path) != before.stamps[name]
        else:
            ids = commits.get(name) or (after.dirty[name], "")
            existed = ids[0] != ""
            is_changed = _differs_from_commit(path, *ids, is_dirty=name in after.dirty)
        if is_changed and _was_touched(path, before, is_old=existed):
            (edited if existed else written).append(str(path))
    if len(written) + len(edited) > MAX_CHANGED_FILES:
        return FileTouches()
    return FileTouches(written=tuple(written), edited=tuple(edited))


def _was_touched(path: Path, before: Snapshot, *, is_old: bool) -> bool:
    """Whether something happened to `path` after the command began.

    If it is gone, the stamp of the folder that held it shows it. If it came with a moved folder,
    that one's does: moving a folder changes its ``ctime``, and not its ``mtime``, which tells it
    from a folder in which something else changed. The user may have written `path` before.
    """
    begun_ns, top = before.begun_ns, before.tree.root
    around = [place for place in path.parents if place.is_relative_to(top)]
    if os.path.lexists(path):
        if _has_changed_since(path, begun_ns):
            return True
        return not is_old and any(_has_moved_since(place, begun_ns) for place in around[:-1])
    place = next((each for each in around if os.path.lexists(each)), top)
    return _has_changed_since(place, begun_ns)


def _has_moved_since(folder: Path, begun_ns: int) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return status.st_mtime_ns < begun_ns <= status.st_ctime_ns


def _has_changed_since(path: Path, begun_ns: int) -> bool:
    try:
        return path.lstat().st_ctime_ns >= begun_ns
    except OSError:
        return False


def _differs_from_commit(path: Path, before_id: str, after_id: str, *, is_dirty: bool) -> bool:
    """Whether a file that matched the commit before the command no longer does.

    A file that is in both commits and clean without existing was never checked out.
    """
    if os.path.lexists(path):
        return not (before_id and has_content(path, before_id))
    return bool(before_id) and (is_dirty or not after_id)
