"""What there is that somebody outside obeys, at one moment: looked at, compared, kept on disk."""

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
from agent_tui.tools.files.protected import is_secret_name
from agent_tui.tools.sandbox.beneath import folder_of, read_at
from agent_tui.tools.sandbox.git_controls import ControlKind, controls_of
from agent_tui.tools.sandbox.known_versions import References
from agent_tui.tools.sandbox.obeyed import is_only_read
from agent_tui.tools.sandbox.project_walk import Found

MOST_COPIED_FILES: Final = 200
_MOST_COPIED_BYTES: Final = 2_000_000
_MOST_VERSIONS: Final = 20
LINK: Final = "link:"
OTHER: Final = "other"

Stamp: TypeAlias = tuple[int, int, int]
"""Inode, ``ctime`` in nanoseconds and size."""

Way: TypeAlias = Literal["compared", "copied", "mounted"]
"""How something obeyed is kept as it is: compared after each command; a copy takes its place
inside; a read-only mount."""


@dataclass(slots=True)
class Look:
    """All of it now.

    Args:
        nodes: The uppermost files and folders that are obeyed, and by whom.
        ways: How each is kept.
        contents: Of each file, but in folders that are mounted, and each link: a digest.
        controls: What git obeys.
        control_contents: The digest of each.
    """

    nodes: dict[Path, str] = field(default_factory=dict[Path, str])
    ways: dict[Path, Way] = field(default_factory=dict[Path, Way])
    contents: dict[Path, str] = field(default_factory=dict[Path, str])
    controls: dict[Path, ControlKind] = field(default_factory=dict[Path, ControlKind])
    control_contents: dict[Path, str] = field(default_factory=dict[Path, str])


class KeptState(BaseModel):
    """What is on disk of the newest moment at which all was in order."""

    model_config = ConfigDict(frozen=True)

    nodes: tuple[str, ...] = ()
    contents: dict[str, str] = {}
    controls: dict[str, str] = {}
    seen: dict[str, tuple[str, ...]] = {}
    trusted: dict[str, tuple[str, ...]] = {}
    last: dict[str, dict[str, str]] = {}
    first: tuple[str, ...] = ()


class Contents:
    """Reads files, and keeps what they held in `folder`.

    Args:
        folder: Ours.
        roots: The folders worked in.
    """

    def __init__(self, folder: Path, roots: Sequence[Path]) -> None:
        self._folder = folder
        self._roots = roots
        self._known: dict[Path, tuple[Stamp, str]] = {}

    def digest_of(self, path: Path) -> str:
        """Of what is at `path` now, which is kept; empty where nothing is."""
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
        """The content and the mode behind a digest."""
        name, _, mode = digest.partition("-")
        with suppress(OSError, ValueError):
            return (self._folder / name).read_bytes(), int(mode, 8)
        return None

    def bytes_of(self, digest: str) -> bytes | None:
        """What git would keep of a file or link behind a digest."""
        if digest.startswith(LINK):
            return bytes.fromhex(digest.removeprefix(LINK))
        kept = self.of(digest)
        return None if kept is None else kept[0]

    def keep(self, content: bytes, mode: int) -> str:
        """The digest of a file with this `content`, which is kept."""
        name = hashlib.sha256(content).hexdigest()
        if not (self._folder / name).exists():
            replace_private_file(self._folder / name, content)
        return f"{name}-{mode:o}"


def look_at(found: Found, contents: Contents, *, has_mounts: bool) -> Look:
    """All that is obeyed of what a walk `found`.

    Args:
        found: By `ProjectWalk`.
        contents: Reads it.
        has_mounts: Whether the wall can hold a file in a folder that may be written.
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


def way_of(node: Path, files: Sequence[Path] | None, *, has_mounts: bool) -> Way:
    """How `node` with these `files` (None: too many) is kept."""
    if not has_mounts or node.is_symlink():
        return "compared"
    if not node.is_dir():
        return "compared" if is_only_read(node.name) and files else "mounted"
    is_plain = files is not None and all(
        path.is_file() and not path.is_symlink() and not is_secret_name(path.name) for path in files
    )
    return "copied" if is_plain else "mounted"


def files_of(node: Path) -> list[Path] | None:
    """The files and links that `node` is or holds; None where they are many or large."""
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
    """What is kept in `file`; None where nothing is."""
    try:
        return KeptState.model_validate_json(file.read_bytes())
    except (OSError, ValueError):
        return None


def write_state(file: Path, state: KeptState) -> None:
    """Keep `state` in `file`.

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
    """What to keep of a moment at which all is in order."""
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
    """What is kept of the repositories."""
    return {
        str(path_of(top)): References(
            list(trusted),
            {str(path_of(ref)): id for ref, id in state.last.get(top, {}).items()},
        )
        for top, trusted in state.trusted.items()
    }


def with_seen(seen: Mapping[Path, tuple[str, ...]], look: Look) -> dict[Path, tuple[str, ...]]:
    """`seen` and the contents of now, the newest first, some of each file."""
    versions = dict(seen)
    for path, digest in look.contents.items():
        if digest != OTHER:
            older = (each for each in versions.get(path, ()) if each != digest)
            versions[path] = (digest, *older)[:_MOST_VERSIONS]
    return versions


def name_of(path: Path) -> str:
    """`path` as JSON can hold it, whatever its bytes are."""
    return os.fsencode(path).decode("latin-1")


def path_of(name: str) -> Path:
    """What `name_of` was given."""
    return Path(os.fsdecode(name.encode("latin-1")))
