"""Records work trees before and after a command: the mode and the content of each file.

The user's repository is only read: which files it tracks or does not ignore, and its objects. Even
to write an object that is already there changes its time, so contents that git lacks go into a
folder of ours, and git writes nothing. The files are read by us, so no filter or hook runs, no line
end is converted, and an object holds the exact bytes of a file. Left out are ignored files, nested
repositories, large and unreadable files and those whose names suggest keys.
"""

import asyncio
import atexit
import contextlib
import errno
import os
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias

from agent_tui.regular_files import read_at
from agent_tui.safe_paths import open_folder
from agent_tui.tools.files.protected import is_secret_name
from agent_tui.tools.files.versions import FILE, LINK, PROGRAM
from agent_tui.tools.git.command import (
    GitSilentError,
    ask_git,
    git_argv,
    object_header,
    object_id,
)
from agent_tui.tools.git.status import (
    TreeDifference,
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
_MOST_ID_BYTES: Final = 100
"""Bytes of a line that says whether git has an object."""

_Blob: TypeAlias = tuple[int, str]
"""The mode that git gives a file, and the id of its content."""

_NONE: Final[_Blob] = (0, "")
_LARGE: Final = "large:"

_SAME_MOMENT_NS = 50_000_000
"""Files changed shortly before a look are checked again: file systems have coarse clocks."""

_Stamp: TypeAlias = tuple[int, int, int, int, int]
"""A file's change time in nanoseconds, size, inode and mode."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The state of a work tree: its top folder, and each file by its name there.

    A file whose content is too large to be recorded has an id that changes when the file does.
    """

    root: Path
    files: Mapping[bytes, _Blob]

    def has_content(self, name: str) -> bool:
        """Whether the content of the file `name` was recorded."""
        known = self.files.get(os.fsencode(name))
        return known is not None and not is_too_large(known[1])


@dataclass(frozen=True, slots=True)
class _Top:
    """The top folder that git named, and the ``.git`` and the environment that led to it."""

    marker: Path | None
    environ: Mapping[str, str]
    root: Path


_MOST_LOG_BYTES = 20_000


@dataclass(slots=True)
class _Place:
    """Our folder for one work tree, and what was found there.

    Args:
        environ: The environment of git calls that read the user's objects and ours.
        objects: Where our objects are.
        no_id: An id of the length that git gives them here.
        files: The files at the last look.
        stamps: What changes when one of them does; those that may be changing have none.
    """

    environ: dict[str, str]
    objects: Path
    no_id: str
    files: Mapping[bytes, _Blob] = field(default_factory=dict[bytes, _Blob])
    stamps: Mapping[bytes, _Stamp] = field(default_factory=dict[bytes, _Stamp])


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
                return Tree(root, await self._read_tree(root, environ))
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

    async def find_unkept(
        self, tree: Tree, environ: Mapping[str, str], places: Sequence[Path]
    ) -> tuple[Path, ...] | None:
        """What git calls changed or untracked at or below `places`, and `tree` lacks.

        It lacks what is large, has a name like a key or is in a nested repository, and everything
        if there are too many changes. None if git does not say what has changed.

        Args:
            tree: Just recorded.
            environ: The environment of commands here.
            places: Absolute paths.
        """
        try:
            dirty = (await read_work_tree(self._keeper, tree.root, environ)).dirty
        except GitSilentError:
            return None
        paths = {name: tree.root / name for name in dirty if not name.endswith("/")}
        lost = [name for name in paths if any(map(paths[name].is_relative_to, places))]
        if len(lost) <= MOST_CHANGES:
            lost = [name for name in lost if not tree.has_content(name)]
        there = await asyncio.to_thread(lambda: [n for n in lost if os.path.lexists(paths[n])])
        return tuple(paths[name] for name in there)

    def changes(self, before: Tree, after: Tree) -> tuple[TreeDifference, ...]:
        """The files that differ, by name; none if there are too many."""
        if before.root != after.root:
            return ()
        old, new = before.files, after.files
        names = [name for name in old.keys() | new.keys() if old.get(name) != new.get(name)]
        if len(names) > MOST_CHANGES:
            return ()
        pairs = ((name, old.get(name, _NONE), new.get(name, _NONE)) for name in sorted(names))
        return tuple(
            TreeDifference(os.fsdecode(name), was[0], now[0], was[1], now[1])
            for name, was, now in pairs
        )

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

    async def _read_tree(self, root: Path, environ: Mapping[str, str]) -> Mapping[bytes, _Blob]:
        """The files now; those that changed since the last look are read."""
        place = self._places.get(root)
        if place is None:
            place = self._places[root] = await self._make_place(root, environ)
        listing = git_argv("ls-files", "-co", "--exclude-standard", "-z")
        answer = await ask_git(self._keeper, listing, root, environ, most_bytes=MOST_FILES * 200)
        begun_ns = time.time_ns()
        stamps, large = await asyncio.to_thread(_stamps, root, answer, place.files)
        if len(stamps) > MOST_FILES:
            raise TimeoutError
        fresh = {name for name, stamp in stamps.items() if place.stamps.get(name) != stamp}
        if fresh or len(stamps) != len(place.files):
            read = await self._take_in(root, fresh, place)
            same = {name: place.files[name] for name in stamps.keys() - fresh}
            place.files = same | read
        settled_ns = begun_ns - _SAME_MOMENT_NS
        place.stamps = {
            name: at
            for name, at in stamps.items()
            if max(at[:2]) < settled_ns and name in place.files
        }
        return {**place.files, **large} if large else place.files

    async def _take_in(
        self, root: Path, names: Collection[bytes], place: _Place
    ) -> dict[bytes, _Blob]:
        """The files `names` without unreadable ones; contents that git lacks are stored."""
        known: dict[bytes, _Blob] = {}
        if len(names) > MOST_CHANGES:  # of fewer, most are new, and to ask takes longer
            known = await asyncio.to_thread(_read_files, root, names, place.no_id)
            asked = "".join(f"{id}\n" for _, id in known.values()).encode()
            argv = git_argv("cat-file", "--batch-check=%(objectname)")
            most = MOST_FILES * _MOST_ID_BYTES
            answer = await ask_git(
                self._keeper, argv, root, place.environ, stdin=asked, most_bytes=most
            )
            there = {*answer.decode("ascii").split("\n")}
            known = {name: blob for name, blob in known.items() if blob[1] in there}
        new = [name for name in names if name not in known]
        return known | await asyncio.to_thread(_read_files, root, new, place.no_id, place.objects)

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
        alternates = folder / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_bytes(os.fsencode(root / objects.removesuffix("\n")) + b"\n")
        return _Place(ours, folder / "objects", "0" * (64 if kind == "sha256" else 40))


async def read_blobs(
    keeper: ProcessKeeper, root: Path, ids: Iterable[str], environ: Mapping[str, str]
) -> dict[str, bytes]:
    """The content of the objects with these ids, or names that git resolves, by their ids.

    Those that git cannot provide are left out. Never raises for anything git does.
    """
    known = (id for id in dict.fromkeys(ids) if not is_too_large(id))
    asked = "".join(f"{id}\n" for id in known).encode()
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


def is_too_large(id: str) -> bool:
    """Whether `id` stands for a content that was not recorded because of its size."""
    return id.startswith(_LARGE)


def _stamps(
    root: Path, listing: bytes, known: Collection[bytes]
) -> tuple[dict[bytes, _Stamp], dict[bytes, _Blob]]:
    """The files in `listing` to record, with a stamp that changes when the file does.

    Also those whose content is too large to be recorded.
    """
    top = os.fsencode(root) + b"/"
    stamps: dict[bytes, _Stamp] = {}
    large: dict[bytes, _Blob] = {}
    for name in listing.split(b"\0"):
        if not name or name.endswith(b"/"):
            continue
        if name not in known and is_secret_name(_last_part(name)):
            continue
        with contextlib.suppress(OSError):
            status = os.lstat(top + name)
            is_file = stat.S_ISREG(status.st_mode)
            if is_file and status.st_size > MOST_FILE_BYTES:
                id = f"{_LARGE}{status.st_size}-{status.st_mtime_ns}"
                large[name] = PROGRAM if status.st_mode & stat.S_IXUSR else FILE, id
            elif is_file or stat.S_ISLNK(status.st_mode):
                times = status.st_mtime_ns, status.st_ctime_ns
                stamps[name] = (*times, status.st_size, status.st_ino, status.st_mode)
    return stamps, large


def _read_files(
    root: Path, names: Iterable[bytes], no_id: str, objects: Path | None = None
) -> dict[bytes, _Blob]:
    """The files `names` of the folder `root`, without unreadable ones.

    Each folder is opened without following links: nothing outside `root` is read.

    Args:
        root: The folder.
        names: Relative to it.
        no_id: An id as git gives them here.
        objects: Where to store the contents; None to store none.
    """
    found: dict[bytes, _Blob] = {}
    for folder, files in groupby(sorted(names), os.path.dirname):
        with contextlib.suppress(OSError), open_folder(root / os.fsdecode(folder)) as opened:
            for name in files:
                with contextlib.suppress(OSError):
                    mode, content = _read_file(opened, name.rpartition(b"/")[2])
                    id = object_id(content, like=no_id)
                    if objects is not None:
                        _store(objects, id, content)
                    found[name] = mode, id
    return found


def _read_file(folder: int, name: bytes) -> tuple[int, bytes]:
    """The mode and the content of a file or link in the open `folder`, as git has them.

    Raises:
        OSError: It cannot be read.
    """
    try:
        content, mode = read_at(folder, name, MOST_FILE_BYTES)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return LINK, os.readlink(name, dir_fd=folder)
    return PROGRAM if mode & stat.S_IXUSR else FILE, content


def _store(objects: Path, id: str, content: bytes) -> None:
    """Store `content` among our `objects` as git stores a single one.

    Raises:
        OSError: It cannot be written.
    """
    path = objects / id[:2] / id[2:]
    if path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(zlib.compress(object_header(content) + content, 1))
    Path(file.name).replace(path)


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
