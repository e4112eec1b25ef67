"""The files that outside programs follow, at one moment: read, compared, stored on disk.

Beside them is a marker of each program that runs commands in a folder.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from agent_tui.atomic_files import replace_private_file
from agent_tui.file_locks import FileLock, LockHeldError
from agent_tui.paths import make_private_dir
from agent_tui.tools.files.protected import is_secret_name
from agent_tui.tools.sandbox.beneath import folder_of, read_at
from agent_tui.tools.sandbox.git_controls import ControlKind, controls_of
from agent_tui.tools.sandbox.known_versions import References
from agent_tui.tools.sandbox.obeyed import is_only_read
from agent_tui.tools.sandbox.project_walk import WalkFindings

MOST_COPIED_FILES: Final = 200
_MOST_COPIED_BYTES: Final = 2_000_000
_MOST_VERSIONS: Final = 20
LINK: Final = "link:"
OTHER: Final = "other"

Stamp: TypeAlias = tuple[int, int, int]
"""Inode, ``ctime`` in nanoseconds and size."""

Protection: TypeAlias = Literal["compared", "copied", "mounted"]
"""How a followed file is protected: compared after each command; replaced by a copy inside; a
read-only mount."""

_STATE: Final = ".state"
_BUSY: Final = b"1"
_IDLE: Final = b"0"


@dataclass(slots=True)
class Look:
    """The current state.

    Args:
        nodes: The uppermost followed files and folders, and the program that follows each.
        ways: How each is protected.
        contents: A digest of each file (except in mounted folders) and each link.
        controls: What git follows.
        control_contents: The digest of each.
    """

    nodes: dict[Path, str] = field(default_factory=dict[Path, str])
    ways: dict[Path, Protection] = field(default_factory=dict[Path, Protection])
    contents: dict[Path, str] = field(default_factory=dict[Path, str])
    controls: dict[Path, ControlKind] = field(default_factory=dict[Path, ControlKind])
    control_contents: dict[Path, str] = field(default_factory=dict[Path, str])


class KeptState(BaseModel):
    """The last approved state, as stored on disk."""

    model_config = ConfigDict(frozen=True)

    nodes: tuple[str, ...] = ()
    contents: dict[str, str] = {}
    controls: dict[str, str] = {}
    seen: dict[str, tuple[str, ...]] = {}
    trusted: dict[str, tuple[str, ...]] = {}
    last: dict[str, dict[str, str]] = {}
    first: tuple[str, ...] = ()


class Contents:
    """Reads files, and stores their content in `folder`.

    Args:
        folder: Our storage folder.
        roots: The working folders.
    """

    def __init__(self, folder: Path, roots: Sequence[Path]) -> None:
        self._folder = folder
        self._roots = roots
        self._known: dict[Path, tuple[Stamp, str]] = {}

    def digest_of(self, path: Path) -> str:
        """Digest of what is at `path` now, which is stored; empty if nothing is there."""
        try:
            status = path.lstat()
        except OSError:
            return ""
        stamp = status.st_ino, status.st_ctime_ns, status.st_size
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        digest = OTHER
        with suppress(OSError):
            if stat.S_ISLNK(status.st_mode):
                digest = LINK + os.fsencode(path.readlink()).hex()
            elif stat.S_ISREG(status.st_mode):
                with folder_of(path, self._roots) as folder:
                    content, mode = read_at(folder, path.name)
                digest = self.keep(content, mode)
        self._known[path] = stamp, digest
        return digest

    def of(self, digest: str) -> tuple[bytes, int] | None:
        """The content and the mode for a digest; None if it is not stored."""
        name, _, mode = digest.partition("-")
        with suppress(OSError, ValueError):
            return (self._folder / name).read_bytes(), int(mode, 8)
        return None

    def bytes_of(self, digest: str) -> bytes | None:
        """What git would store of the file or link with this digest; None if it is not stored."""
        if digest.startswith(LINK):
            return bytes.fromhex(digest.removeprefix(LINK))
        kept = self.of(digest)
        return None if kept is None else kept[0]

    def keep(self, content: bytes, mode: int) -> str:
        """Store a file with this `content`; returns its digest."""
        name = hashlib.sha256(content).hexdigest()
        if not (self._folder / name).exists():
            replace_private_file(self._folder / name, content)
        return f"{name}-{mode:o}"


def look_at(found: WalkFindings, contents: Contents, *, has_mounts: bool) -> Look:
    """The state of everything that a walk `found`.

    Args:
        found: From `ProjectWalk`.
        contents: Reads it.
        has_mounts: Whether the wall can protect a file in a writable folder.
    """
    look = Look()
    for node, who in found.obeyed.items():
        look.nodes[node] = who
        files = files_of(node)
        look.ways[node] = way = way_of(node, files, has_mounts=has_mounts)
        if way != "mounted" or not node.is_dir():
            for path in files or ():
                look.contents[path] = contents.digest_of(path)
    for entry in found.gits:
        for path, kind in controls_of(entry):
            look.controls[path] = kind
            look.control_contents[path] = contents.digest_of(path)
    return look


def way_of(node: Path, files: Sequence[Path] | None, *, has_mounts: bool) -> Protection:
    """How `node` with these `files` (None: too many) is protected."""
    if not has_mounts or node.is_symlink():
        return "compared"
    if not node.is_dir():
        return "compared" if is_only_read(node.name) and files else "mounted"
    is_plain = files is not None and all(
        path.is_file() and not path.is_symlink() and not is_secret_name(path.name) for path in files
    )
    return "copied" if is_plain else "mounted"


def files_of(node: Path) -> list[Path] | None:
    """The files and links that `node` is or contains; None if they are too many or too large."""
    found: list[Path] = []
    size = 0
    pending = [node]
    for path in pending:
        try:
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    pending += sorted(path / entry.name for entry in entries)
                continue
        except OSError:
            continue
        found.append(path)
        size += status.st_size
        if len(pending) > MOST_COPIED_FILES or size > _MOST_COPIED_BYTES:
            return None
    return found


def read_state(file: Path) -> KeptState | None:
    """The state stored in `file`; None if there is none."""
    try:
        return KeptState.model_validate_json(file.read_bytes())
    except (OSError, ValueError):
        return None


def write_state(file: Path, state: KeptState) -> None:
    """Store `state` in `file`.

    Raises:
        OSError: It cannot be written.
    """
    replace_private_file(file, json.dumps(state.model_dump(mode="json")))


def state_of(
    look: Look,
    seen: Mapping[Path, tuple[str, ...]],
    references: Mapping[str, References],
    first: Sequence[str],
) -> KeptState:
    """What to store of an approved state."""
    return KeptState(
        nodes=tuple(map(name_of, look.nodes)),
        contents={name_of(path): digest for path, digest in look.contents.items()},
        controls={name_of(path): digest for path, digest in look.control_contents.items()},
        seen={name_of(path): digests for path, digests in seen.items()},
        trusted={name_of(Path(top)): tuple(each.trusted) for top, each in references.items()},
        last={
            name_of(Path(top)): {name_of(Path(ref)): id for ref, id in each.last.items()}
            for top, each in references.items()
        },
        first=tuple(name_of(Path(path)) for path in first),
    )


def references_of(state: KeptState) -> dict[str, References]:
    """The stored references, by repository."""
    return {
        str(path_of(top)): References(
            list(trusted),
            {str(path_of(ref)): id for ref, id in state.last.get(top, {}).items()},
        )
        for top, trusted in state.trusted.items()
    }


def with_seen(seen: Mapping[Path, tuple[str, ...]], look: Look) -> dict[Path, tuple[str, ...]]:
    """`seen` with the current contents, the newest first, a few per file."""
    versions = dict(seen)
    for path, digest in look.contents.items():
        if digest != OTHER:
            older = (each for each in versions.get(path, ()) if each != digest)
            versions[path] = (digest, *older)[:_MOST_VERSIONS]
    return versions


def name_of(path: Path) -> str:
    """`path` as text for JSON, whatever its bytes are."""
    return os.fsencode(path).decode("latin-1")


def path_of(name: str) -> Path:
    """The inverse of `name_of`."""
    return Path(os.fsdecode(name.encode("latin-1")))


class BusyMarker:
    """The marker of one program: two files in `folder`, which all programs share.

    One is locked while the program lives, the other says whether commands run: writing a byte costs
    nothing, while creating and removing a file takes some milliseconds.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._file = folder / name
        self._lock: FileLock | None = None
        self._state = -1

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
        os.pwrite(self._state, _BUSY, 0)

    def say_idle(self) -> None:
        """Note that no command runs."""
        if self._lock is not None:
            os.pwrite(self._state, _IDLE, 0)

    def is_another_busy(self) -> bool:
        """Whether another program runs commands, or did when it was killed."""
        try:
            states = [path for path in self._folder.iterdir() if path.suffix == _STATE]
        except OSError:
            return False
        return any([self._is_busy(state) for state in states if state.stem != self._file.name])

    def remove(self) -> None:
        """Remove the marker when the program or the conversation ends."""
        if self._lock is not None:
            os.close(self._state)
            self._file.with_name(self._file.name + _STATE).unlink(missing_ok=True)
            self._lock.release()
            self._lock = None

    def _is_busy(self, state: Path) -> bool:
        with suppress(OSError):
            is_busy = state.read_bytes() == _BUSY
            try:
                FileLock(state.with_suffix("")).release()
                state.unlink()  # its program has ended
            except LockHeldError:
                pass
            return is_busy
        return False
