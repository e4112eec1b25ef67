"""Records work trees before and after a command, as git trees in a private folder.

The user's repository is only read: which files it tracks or does not ignore, and its objects. The
index and new objects are in our own folder, with their own configuration and attributes: no filter
or hook runs, no line end is converted, and an object holds the exact bytes of a file. Left out are
ignored files, nested repositories, large files and those whose names suggest keys.
"""

import asyncio
import atexit
import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from agent_tui.tools.files.protected import is_secret_name
from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv
from agent_tui.tools.git.status import (
    TreeDifference,
    diff_trees,
    nearest_git,
    read_work_tree,
    top_folder,
)
from agent_tui.tools.processes.keeper import ProcessKeeper

LOOK_S = 3.0
"""Seconds for which a command may be delayed: the first look at 20,000 files takes one."""

MOST_FILES = 50_000
MOST_CHANGES = 500
"""The most changed files: a command that changes more (a checkout, an unpacking) is not undone this
way."""

MOST_FILE_BYTES = 5_000_000
_MOST_READ_BYTES = 100_000_000
_CHANCES = 2
"""After so many slow looks, a work tree is not looked at any more."""

_PREFIX = "agent-tui-trees-"
_ATTRIBUTES = "* -text -eol -filter -ident -working-tree-encoding\n"
_EXACT = ("core.autocrlf=false", "core.safecrlf=false", "core.symlinks=true", "gc.auto=0")


_SAME_MOMENT_NS = 50_000_000
"""Files changed shortly before a look are checked again: file systems have coarse clocks."""

_Stamp: TypeAlias = tuple[int, int, int, int, int]
"""A file's change time in nanoseconds, size, inode and mode."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The state of a work tree: its top folder, and the id that git gives the whole tree."""

    root: Path
    id: str


@dataclass(frozen=True, slots=True)
class _Top:
    """The top folder that git named, and the ``.git`` and the environment that led to it."""

    marker: Path | None
    environ: Mapping[str, str]
    root: Path


_MOST_LOG_BYTES = 20_000


@dataclass(slots=True)
class _Place:
    """Our folder for one work tree, and what its index holds: each file, and the tree."""

    environ: dict[str, str]
    names: set[bytes] = field(default_factory=set[bytes])
    stamps: dict[bytes, _Stamp] = field(default_factory=dict[bytes, _Stamp])
    tree: str = ""


class WorkTrees:
    """Records work trees, with git calls that `keeper` starts.

    Args:
        keeper: Starts processes.
    """

    def __init__(self, keeper: ProcessKeeper) -> None:
        self._keeper = keeper
        self._places: dict[Path, _Place] = {}
        self._tops: dict[Path, _Top] = {}
        self._slow_looks: dict[Path, int] = {}
        self._lock = asyncio.Lock()

    async def look(self, cwd: Path, environ: Mapping[str, str]) -> Tree | None:
        """The current state of the work tree that contains `cwd`.

        None if there is none, or it takes too long. Never raises for anything git does.
        """
        if self._slow_looks.get(cwd, 0) >= _CHANCES:
            return None
        try:
            async with asyncio.timeout(LOOK_S), self._lock:
                root = await self._top_folder(cwd, environ)
                return Tree(root, await self._write_tree(root, environ))
        except TimeoutError:
            self._slow_looks[cwd] = self._slow_looks.get(cwd, 0) + 1
        except (GitSilentError, OSError):
            pass
        return None

    async def commits_since(
        self, cwd: Path, environ: Mapping[str, str], since_s: float
    ) -> str | None:
        """The commits made since `since_s`, oldest first, each with its files.

        Of more than `_MOST_LOG_BYTES` the newest are given, below the number of those left out.
        None if `cwd` is in no repository. Never raises for anything git does.

        Args:
            cwd: A folder in the work tree.
            environ: The environment of commands here.
            since_s: Seconds since 1970.
        """
        since = f"--since=@{int(since_s)}"
        log = git_argv("log", "--reverse", "--name-status", "--format=commit %h %s", since)
        try:
            answer = await ask_git(self._keeper, log, cwd, environ)
        except (GitSilentError, OSError):
            return None
        lines = answer.decode("utf-8", "replace").replace("\n\n", "\n").strip().split("\n")
        room, first = _MOST_LOG_BYTES, len(lines)
        for at in reversed(range(len(lines))):
            room -= len(lines[at].encode()) + 1
            if room < 0:
                break
            first = at if lines[at].startswith("commit ") else first
        left_out = sum(line.startswith("commit ") for line in lines[:first])
        head = [f"[{left_out:,} earlier commits are left out]"] if left_out else []
        return "\n".join([*head, *lines[first:]])

    async def holds_changes(self, tree: Tree, environ: Mapping[str, str]) -> bool:
        """Whether `tree`, just recorded, has every file that git calls changed or untracked.

        False if it lacks one that is large, has a name like a key or is in a nested repository, or
        if there are too many changes.
        """
        place = self._places.get(tree.root)
        try:
            dirty = (await read_work_tree(self._keeper, tree.root, environ)).dirty
        except GitSilentError:
            return False
        if place is None or len(dirty) > MOST_CHANGES:
            return False
        unknown = [name for name in dirty if os.fsencode(name) not in place.names]
        return not await asyncio.to_thread(_are_there, tree.root, unknown)

    async def changes(self, before: Tree, after: Tree) -> tuple[TreeDifference, ...]:
        """The files that differ; none if there are too many, or git cannot tell."""
        place = self._places.get(before.root)
        if place is None or before.root != after.root:
            return ()
        try:
            changed = await diff_trees(
                self._keeper, before.root, before.id, after.id, place.environ
            )
        except GitSilentError:
            return ()
        return changed if len(changed) <= MOST_CHANGES else ()

    async def contents(self, root: Path, ids: Sequence[str]) -> dict[str, bytes]:
        """The content of the objects with these ids, as far as git provides it."""
        place = self._places.get(root)
        return await read_blobs(self._keeper, root, ids, place.environ) if place else {}

    async def _top_folder(self, cwd: Path, environ: Mapping[str, str]) -> Path:
        """The top of the work tree that contains `cwd`; git is asked once for each ``.git``."""
        marker = await asyncio.to_thread(nearest_git, cwd, environ)
        known = self._tops.get(cwd)
        if known is None or (known.marker, known.environ) != (marker, environ):
            root = await top_folder(self._keeper, cwd, environ)
            known = self._tops[cwd] = _Top(marker, dict(environ), root)
        return known.root

    async def _write_tree(self, root: Path, environ: Mapping[str, str]) -> str:
        """Update our index; returns its tree."""
        place = self._places.get(root)
        if place is None:
            place = self._places[root] = await self._make_place(root, environ)
        listing = git_argv("ls-files", "-co", "--exclude-standard", "-z")
        answer = await ask_git(self._keeper, listing, root, environ, most_bytes=MOST_FILES * 200)
        begun_ns = time.time_ns()
        stamps = await asyncio.to_thread(_stamps, root, answer, place.names)
        if len(stamps) > MOST_FILES:
            raise TimeoutError
        fresh = {name for name, stamp in stamps.items() if place.stamps.get(name) != stamp}
        if (given := fresh | (place.names - stamps.keys())) or not place.tree:
            place.names |= fresh
            place.stamps = {}  # until git has taken in all files
            update = git_argv(
                "update-index", "--add", "--remove", "--replace", "-z", "--stdin", settings=_EXACT
            )
            lines = b"".join(name + b"\0" for name in sorted(given))
            await ask_git(self._keeper, update, root, place.environ, stdin=lines)
            tree = await ask_git(self._keeper, git_argv("write-tree"), root, place.environ)
            place.tree = tree.decode("ascii").strip()
        settled_ns = begun_ns - _SAME_MOMENT_NS
        place.names = set(stamps)
        place.stamps = {name: at for name, at in stamps.items() if max(at[:2]) < settled_ns}
        return place.tree

    async def _make_place(self, root: Path, environ: Mapping[str, str]) -> _Place:
        """Create our repository for the work tree `root`, which may read the user's objects."""
        shown = git_argv("rev-parse", "--show-object-format", "--git-path", "objects")
        kind, _, objects = os.fsdecode(await ask_git(self._keeper, shown, root, environ)).partition(
            "\n"
        )
        folder = await asyncio.to_thread(_new_folder)
        ours = {**environ, "GIT_DIR": str(folder), "GIT_WORK_TREE": str(root)}
        ours.pop("GIT_INDEX_FILE", None)
        init = git_argv("init", "-q", f"--object-format={kind}", "--template=")
        await ask_git(self._keeper, init, root, ours)
        (folder / "info").mkdir(exist_ok=True)
        (folder / "info" / "attributes").write_text(_ATTRIBUTES, "utf-8")
        alternates = folder / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_bytes(os.fsencode(root / objects.removesuffix("\n")) + b"\n")
        return _Place(ours)


async def read_blobs(
    keeper: ProcessKeeper, root: Path, ids: Iterable[str], environ: Mapping[str, str]
) -> dict[str, bytes]:
    """The content of the objects with these ids, or names that git resolves, by their ids.

    Those that git cannot provide are left out. Never raises for anything git does.
    """
    asked = "".join(f"{object_id}\n" for object_id in dict.fromkeys(ids)).encode()
    if not asked:
        return {}
    argv = git_argv("cat-file", "--batch")
    try:
        answer = await ask_git(
            keeper, argv, root, environ, stdin=asked, most_bytes=_MOST_READ_BYTES
        )
        return dict(_objects(answer))
    except (GitSilentError, ValueError):
        return {}


def _new_folder() -> Path:
    """A folder that is removed when the program ends; removes those of killed programs."""
    above = Path(tempfile.gettempdir())
    for left in above.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdecimal() and not _is_alive(int(pid)) and left.lstat().st_uid == os.getuid():
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _stamps(root: Path, listing: bytes, known: Set[bytes]) -> dict[bytes, _Stamp]:
    """The names in `listing` of files to record, with a stamp that changes when the file does."""
    top = os.fsencode(root) + b"/"
    stamps: dict[bytes, _Stamp] = {}
    for name in listing.split(b"\0"):
        if not name or name.endswith(b"/"):
            continue
        if name not in known and is_secret_name(_last_part(name)):
            continue
        with contextlib.suppress(OSError):
            status = os.lstat(top + name)
            is_file = stat.S_ISREG(status.st_mode) and status.st_size <= MOST_FILE_BYTES
            if is_file or stat.S_ISLNK(status.st_mode):
                times = status.st_mtime_ns, status.st_ctime_ns
                stamps[name] = (*times, status.st_size, status.st_ino, status.st_mode)
    return stamps


def _are_there(root: Path, names: Sequence[str]) -> bool:
    """Whether one of `names` exists, not counting nested repositories, which git skips."""
    return any(os.path.lexists(root / name) for name in names if not name.endswith("/"))


def _last_part(name: bytes) -> str:
    return os.fsdecode(name.rpartition(b"/")[2])


def _objects(answer: bytes) -> Iterator[tuple[str, bytes]]:
    """Parse ``cat-file --batch``: ``id blob size``, the content, a newline."""
    at = 0
    while at < len(answer):
        head, _, _ = answer[at : at + 200].partition(b"\n")
        parts = head.decode("ascii").split(" ")
        at += len(head) + 1
        if len(parts) == 3 and parts[1] == "blob":
            size = int(parts[2])
            yield parts[0], answer[at : at + size]
            at += size + 1
