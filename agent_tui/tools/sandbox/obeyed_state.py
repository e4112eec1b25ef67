"""The files that outside programs follow, at one moment: read, compared, stored on disk.

Beside them is a marker of each program that runs commands in a folder.
"""

import hashlib
import os
import stat
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Final, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer

from agent_tui.atomic_files import replace_private_file
from agent_tui.file_locks import FileLock, LockHeldError
from agent_tui.paths import make_private_dir
from agent_tui.safe_paths import is_folder, is_link
from agent_tui.tools.sandbox.beneath import (
    folder_of,
    list_own,
    make_folders,
    read_at,
    read_own,
    reopen,
    write_at,
)
from agent_tui.tools.sandbox.git_controls import ControlKind, controls_of
from agent_tui.tools.sandbox.obeyed import WORK_TREES, holds_work_trees, is_only_read
from agent_tui.tools.sandbox.project_walk import WalkFindings

_MOST_FILES: Final = 2_000
_MOST_BYTES: Final = 20_000_000
_MOST_VERSIONS: Final = 20
LINK: Final = "link:"
OTHER: Final = "other"

Protection: TypeAlias = Literal["compared", "copied", "mounted"]
"""How a followed file is protected: compared after each command; replaced by a copy inside; a
read-only mount."""

_STATE: Final = ".state"
_BUSY: Final = b"1"
_IDLE: Final = b"0"


def _from_json(value: object) -> object:
    return os.fsdecode(value.encode("latin-1")) if isinstance(value, str) else value


def _to_json(path: str | Path) -> str:
    return os.fsencode(path).decode("latin-1")


_FsText: TypeAlias = Annotated[
    str, BeforeValidator(_from_json), PlainSerializer(_to_json, when_used="json")
]
"""A name of the file system, which JSON can store whatever its bytes are."""

_FsPath: TypeAlias = Annotated[
    Path, BeforeValidator(_from_json), PlainSerializer(_to_json, when_used="json")
]


class References(BaseModel):
    """What references of a repository point to.

    Args:
        trusted: Commits of the user.
        last: Each reference when it was last known what they are; None if commands may have moved
            them since.
    """

    trusted: list[str] = []
    last: dict[_FsText, str] | None = None


class Question(NamedTuple):
    """A change that stays until the user decides: who follows the file, and its digest before."""

    who: str
    before: str


class Approved(BaseModel):
    """The last approved state, which is on disk while commands run.

    Args:
        nodes: The uppermost followed files and folders.
        files: The digest of each file in them, and of what git follows.
        asked: What of it the user has yet to decide.
        seen: The digests that each file had, the newest first.
        first: See `ProjectWalk`.
    """

    nodes: set[_FsPath] = Field(default_factory=set[Path])
    files: dict[_FsPath, str] = {}
    asked: dict[_FsPath, Question] = {}
    seen: dict[_FsPath, tuple[str, ...]] = {}
    first: tuple[_FsText, ...] = ()

    @classmethod
    def read(cls, file: Path) -> "Approved | None":
        """The state stored in `file`; None if there is none."""
        try:
            return cls.model_validate_json(read_own(file))
        except (OSError, ValueError):
            return None

    def is_asked(self, path: Path) -> bool:
        """Whether the user has yet to decide on `path`, or on a folder around it."""
        return any(place in self.asked for place in (path, *path.parents)) if self.asked else False

    def note_seen(self) -> None:
        """Remember the contents as versions that were in place, a few per file."""
        for path, digest in self.files.items():
            versions = self.seen.get(path, ())
            if digest != OTHER and versions[:1] != (digest,) and not self.is_asked(path):
                older = (each for each in versions if each != digest)
                self.seen[path] = (digest, *older)[:_MOST_VERSIONS]


@dataclass(frozen=True, slots=True)
class Node:
    """An uppermost followed file or folder.

    Args:
        who: Which program follows it.
        way: How it is protected.
        link: The link through which alone it is followed.
    """

    who: str
    way: Protection
    link: Path | None = None


@dataclass(slots=True)
class Look:
    """The current state.

    Args:
        nodes: The uppermost followed files and folders.
        files: A digest of each file in them, of each link, and of what git follows. `OTHER` is what
            cannot be compared, also for a folder.
        controls: The last: what each is for.
    """

    nodes: dict[Path, Node] = field(default_factory=dict[Path, Node])
    files: dict[Path, str] = field(default_factory=dict[Path, str])
    controls: dict[Path, ControlKind] = field(default_factory=dict[Path, ControlKind])

    def node_of(self, path: Path) -> Path | None:
        """The node that `path` is or lies in."""
        return next((place for place in (path, *path.parents) if place in self.nodes), None)


class Contents:
    """Reads files, and stores their content in `folder`.

    Args:
        folder: Our storage folder.
        roots: The working folders.
    """

    def __init__(self, folder: Path, roots: Sequence[Path]) -> None:
        self._folder = folder
        self._roots = roots
        self._kept: set[str] = set()

    def digest_of(self, path: Path) -> str:
        """Digest of what is at `path` now, which is stored; empty if nothing is there.

        It is read each time: what is written to a mapped file changes its times only once.
        """
        try:
            mode = path.lstat().st_mode
        except OSError:
            return ""
        with suppress(OSError):
            if stat.S_ISLNK(mode):
                return LINK + os.fsencode(path.readlink()).hex()
            if stat.S_ISREG(mode):
                with folder_of(path, self._roots) as folder:
                    return self.keep(*read_at(folder, path.name, _MOST_BYTES))
        return OTHER

    def of(self, digest: str) -> tuple[bytes, int] | None:
        """The content and the mode for a digest; None if it is not stored."""
        name, _, mode = digest.partition("-")
        with suppress(OSError, ValueError):
            return read_own(self._folder / name), int(mode, 8)
        return None

    def bytes_of(self, digest: str) -> bytes | None:
        """What git would store of the file or link with this digest; None if it is not stored."""
        if digest.startswith(LINK):
            return bytes.fromhex(digest.removeprefix(LINK))
        kept = self.of(digest)
        return None if kept is None else kept[0]

    def write(self, path: Path, digest: str, roots: Sequence[Path]) -> None:
        """Write the file or link with `digest` to `path`, if it is stored.

        Raises:
            OSError: It cannot be written, or a folder is there.
        """
        make_folders(path.parent, roots)
        with folder_of(path, roots) as folder:
            if (kept := self.of(digest)) is not None:
                write_at(folder, path.name, *kept)
            elif digest.startswith(LINK):
                with suppress(FileNotFoundError):
                    os.unlink(path.name, dir_fd=folder)
                target = os.fsdecode(bytes.fromhex(digest.removeprefix(LINK)))
                os.symlink(target, path.name, dir_fd=folder)

    def keep(self, content: bytes, mode: int) -> str:
        """Store a file with this `content`; returns its digest."""
        name = hashlib.sha256(content).hexdigest()
        if name not in self._kept:
            if not (self._folder / name).exists():
                replace_private_file(self._folder / name, content)
            self._kept.add(name)
        return f"{name}-{mode:o}"

    def look_at(
        self,
        found: WalkFindings,
        *,
        bare: Container[Path],
        tracked: Container[Path] = (),
        hooks_path: str = "",
    ) -> Look:
        """The state of everything that a walk `found`.

        Args:
            found: From `ProjectWalk`.
            bare: The followed files and folders over which nothing is mounted: git must be able to
                remove them, or the wall has no mounts.
            tracked: The files that git must be able to change.
            hooks_path: See `controls_of`.
        """
        look, links = Look(), dict[Path, str]()
        for node, who in found.obeyed.items():
            files = files_of(node)
            digests = {path: self.digest_of(path) for path in files or ()}
            can_copy = files is not None and OTHER not in digests.values()
            way = _way_of(node, is_bare=node in bare, can_copy=can_copy, tracked=tracked)
            look.nodes[node] = Node(who, way)
            if files is None and way == "compared":
                look.files[node] = OTHER
            elif way != "mounted" or not is_folder(node):
                look.files |= digests
            links |= {path: who for path in digests if is_link(path)}
        look.controls = dict.fromkeys(found.shared, "shared")
        look.controls |= dict.fromkeys(found.irregular, "irregular")
        look.controls |= dict.fromkeys(found.ways, "way")
        unclear = (*found.irregular, *found.ways)
        look.files |= found.shared | {path: self.digest_of(path) for path in unclear}
        for entry in found.gits:
            for path, kind in controls_of(entry, hooks_path):
                is_known = kind == "head" and path in look.controls
                if is_known or look.node_of(path) is not None:
                    continue
                look.controls[path] = kind
                look.files[path] = self.digest_of(path)
                if kind in ("hook", "config", "attributes") and is_link(path):
                    links[path] = "git"
        for link, who in links.items():
            look.files[link] = self.digest_of(link)
            target = Path(os.path.realpath(link))
            if self._is_followed(target, look, found.gits):
                look.nodes[target] = Node(who, "compared", link)
                files = files_of(target)
                digests = {path: self.digest_of(path) for path in files or ()}
                look.files |= {target: OTHER} if files is None else digests
        return look

    def _is_followed(self, target: Path, look: Look, gits: Iterable[Path]) -> bool:
        """Whether programs follow `target` through a link alone, and commands may write it."""
        return (
            any(root in target.parents for root in self._roots)
            and not any(root.is_relative_to(target) for root in self._roots)
            and not any(target.is_relative_to(git) for git in gits)
            and look.node_of(target) is None
            and os.path.lexists(target)
        )


def _way_of(node: Path, *, is_bare: bool, can_copy: bool, tracked: Container[Path]) -> Protection:
    """How `node` is protected, which may be a file that is `tracked`."""
    if is_bare or is_link(node):
        return "compared"
    if not can_copy:
        return "mounted"
    if is_folder(node):
        return "copied"
    return "compared" if node in tracked or is_only_read(node.name) else "mounted"


def files_of(node: Path) -> list[Path] | None:
    """The files and links that `node` is or contains; None if they are too many or too large.

    Without work trees (`work_trees_in`).
    """
    found: list[Path] = []
    size = 0
    pending, trees = [node], work_trees_in(node)
    for path in pending:
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode):
                pending += (each for each in entries_of(path) if each != trees)
            else:
                found.append(path)
                size += status.st_size
            if len(pending) > _MOST_FILES or size > _MOST_BYTES:
                return None
    return found


def entries_of(folder: Path) -> list[Path]:
    """What is in `folder`; nothing if it cannot be listed."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(folder / entry.name for entry in entries)
    return []


def work_trees_in(node: Path) -> Path | None:
    """The folder of `node` with an agent's work trees; None if there is none."""
    path = node / WORK_TREES
    is_one = holds_work_trees(node.name, path.name) and is_folder(path) and not is_link(path)
    return path if is_one else None


class BusyMarker:
    """The marker of one program: two files in `folder`, which all programs share.

    One is locked while the program lives, the other says whether commands run: writing a byte costs
    nothing, while creating and removing a file takes some milliseconds.

    Args:
        folder: Where the markers are.
        name: This program's.
        roots: Where its commands run; none if all programs that use `folder` run them in one place.
    """

    def __init__(self, folder: Path, name: str, roots: Sequence[Path] = ()) -> None:
        self._folder = folder
        self._roots = tuple(os.fsencode(root) + b"/" for root in roots)
        self._file = folder / name
        self._lock: FileLock | None = None
        self._state = -1

    def open_turn(self) -> IO[bytes]:
        """Open the file that a program locks while it takes up the state; closing it releases it.

        Otherwise what the user did before would look like the work of a program that just began.
        """
        turn, flags = self._folder.with_name("turn"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            make_private_dir(turn.parent)
            opened = os.open(turn, flags, 0o600)
        except PermissionError:
            reopen(turn.parent)
            with suppress(FileNotFoundError):
                turn.chmod(0o600)
            opened = os.open(turn, flags, 0o600)
        return os.fdopen(opened, "rb")

    def say_busy(self) -> None:
        """Note that commands run from now on.

        Raises:
            OSError: The folder cannot be used.
        """
        if self._lock is None:
            make_private_dir(self._folder)
            self._lock = FileLock(self._file)
            state = self._file.with_name(self._file.name + _STATE)
            self._state = os.open(state, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._state, b"\0".join((_IDLE, *self._roots)), 0)
        os.pwrite(self._state, _BUSY, 0)

    def say_idle(self) -> None:
        """Note that no command runs."""
        if self._lock is not None:
            os.pwrite(self._state, _IDLE, 0)

    def is_another_busy(self) -> bool:
        """Whether another program runs commands in our roots, or did when it was killed.

        That is also around one of them, or in a folder in one.
        """
        states = [path for path in list_own(self._folder) if path.suffix == _STATE]
        return any([self._is_busy(state) for state in states if state.stem != self._file.name])

    def remove(self, *, is_settled: bool = True) -> None:
        """Remove the marker when the program or the conversation ends.

        Args:
            is_settled: Whether what commands did was judged. Otherwise it stays, as after a kill.
        """
        if self._lock is not None:
            os.close(self._state)
            if is_settled:
                self._file.with_name(self._file.name + _STATE).unlink(missing_ok=True)
            self._lock.release()
            self._lock = None

    def _overlaps(self, other: bytes) -> bool:
        return any(root.startswith(other) or other.startswith(root) for root in self._roots)

    def _is_busy(self, state: Path) -> bool:
        with suppress(OSError):
            busy, *roots = read_own(state).split(b"\0")
            is_busy = busy == _BUSY
            if self._roots and not any(self._overlaps(root) for root in roots):
                return False
            try:
                FileLock(state.with_suffix("")).release()
                state.unlink()  # its program has ended
            except LockHeldError:
                pass
            return is_busy
        return False
