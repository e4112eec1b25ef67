"""What the program stored on this machine: read from the disk, explained by who stores it."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from agent_tui import paths
from agent_tui.cli.stored import CACHES, STORES
from agent_tui.feature import StoredElsewhere, load_object, own_features
from agent_tui.safe_paths import is_folder, is_link, real_path
from agent_tui.sessions.store import TRASH

SESSIONS: Final = "sessions"
LOG: Final = "log"
_LOCK: Final = ".lock"
_BLOCK_BYTES: Final = 512
"""The unit of ``st_blocks``, whatever the file system's own blocks are."""
_UNKNOWN_LOSS: Final = "unknown: this version of agent-tui did not store it"
_BY_HAND: Final = "Look at it, then delete it yourself."


@dataclass(frozen=True, slots=True)
class Usage:
    """What is at a path. Links are counted, not followed.

    Attributes:
        files: Number of files and links.
        size_bytes: What they occupy on the disk; a file with several names counts once.
        last_use_s: When one was last read or written, in seconds since 1970; 0 if there is none.
        has_mounts: Whether another file system is mounted below it.
    """

    files: int = 0
    size_bytes: int = 0
    last_use_s: float = 0.0
    has_mounts: bool = False

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.files + other.files,
            self.size_bytes + other.size_bytes,
            max(self.last_use_s, other.last_use_s),
            self.has_mounts or other.has_mounts,
        )


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A line of the list.

    Attributes:
        kind: What it is; several items may have one kind.
        place: Its path or, in a git remote, its address.
        path: The file or folder; None if it is not on this machine.
        usage: What is there.
        loss: What removing it loses.
        removal: How to remove it; empty if `agent-tui clean KIND` does.
    """

    kind: str
    place: str
    path: Path | None
    usage: Usage
    loss: str
    removal: str = ""

    def has_kind(self, kind: str) -> bool:
        """Whether `kind` names this item; see `is_part`."""
        return is_part(self.kind, kind)


def is_part(kind: str, whole: str) -> bool:
    """Whether `whole` names `kind`: ``caches`` names ``caches/packages``, too."""
    return kind == whole or kind.startswith(f"{whole}/")


def removable_kinds() -> frozenset[str]:
    """The kinds that the program can store and remove, whether there is anything of them or not."""
    return frozenset({TRASH, LOG, *map(_cache_kind, CACHES), *map(_data_kind, _stores())})


def list_stored(sessions: Path) -> list[StoredItem]:
    """Everything that the program stored on this machine. Blocking.

    Args:
        sessions: The folder of all sessions.
    """
    found = [*_session_items(sessions), *_data_items(sessions), *_cache_items()]
    found += [*_log_items(), *_config_items(), *_items_elsewhere()]
    return found


def measure(path: Path, without: frozenset[str] = frozenset()) -> Usage:
    """What is at `path`; nothing that cannot be read. Blocking.

    Args:
        path: A file, a folder or a link.
        without: Names in this folder that don't count.
    """
    try:
        status = path.lstat()
    except OSError:
        return Usage()
    if not stat.S_ISDIR(status.st_mode):
        return _usage_of(status)
    total, folders, linked = Usage(), [path], set[int]()
    while folders:
        folder = folders.pop()
        for entry in _entries(folder):
            if folder == path and entry.name in without:
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if not stat.S_ISDIR(found.st_mode):
                total += _usage_of(found, is_counted=found.st_ino in linked)
                if found.st_nlink > 1:
                    linked.add(found.st_ino)
            elif found.st_dev == status.st_dev:
                folders.append(Path(entry.path))
            else:
                total += Usage(has_mounts=True)
    return total


def _usage_of(status: os.stat_result, *, is_counted: bool = False) -> Usage:
    size = 0 if is_counted else status.st_blocks * _BLOCK_BYTES
    return Usage(1, size, max(status.st_atime, status.st_mtime))


def _session_items(root: Path) -> Iterator[StoredItem]:
    if is_folder(root):
        yield StoredItem(
            SESSIONS,
            str(root),
            root,
            measure(root, frozenset({TRASH})),
            "your conversations; cannot be made again",
            "agent-tui sessions delete SESSION, or agent-tui clean sessions --older-than 90d",
        )
        trash = root / TRASH
        if os.path.lexists(trash):
            loss = "sessions that you deleted; cannot be made again"
            yield _item(TRASH, trash, loss)


def _data_items(sessions: Path) -> Iterator[StoredItem]:
    """What is in the data folder besides the sessions and the log."""
    losses = _stores()
    others = {real_path(sessions), real_path(paths.log_file().parent)}
    for path in _children(paths.user_data_dir()):
        name = path.name.removesuffix(_LOCK)
        if real_path(path) in others:
            continue
        if any(other.is_relative_to(path) for other in others) or name not in losses:
            yield _unknown("data", path)
        else:
            yield _item(_data_kind(name), path, losses[name])


def _cache_items() -> Iterator[StoredItem]:
    for path in _children(paths.user_cache_dir()):
        loss = CACHES.get(path.name)
        kind = _cache_kind(path.name)
        yield _item(kind, path, loss) if loss else _unknown(kind, path)


def _log_items() -> Iterator[StoredItem]:
    folder = paths.log_file().parent
    if os.path.lexists(folder):
        yield _item(LOG, folder, "messages about faults; not needed")


def _config_items() -> Iterator[StoredItem]:
    folder = paths.user_config_dir()
    if is_folder(folder):
        loss = "your settings, instructions and files; cannot be made again"
        removal = "You wrote them: delete them yourself."
        yield StoredItem("settings", str(folder), folder, measure(real_path(folder)), loss, removal)


def _items_elsewhere() -> Iterator[StoredItem]:
    for feature in own_features():
        if feature.stores_elsewhere:
            listed = load_object(feature.stores_elsewhere)
            for found in cast("Callable[[], Iterator[StoredElsewhere]]", listed)():
                usage = measure(found.path) if found.path else Usage()
                yield StoredItem(*found[:3], usage, found.loss, found.removal)


def _stores() -> Mapping[str, str]:
    """What removing each file and folder of the data folder loses, by its name there."""
    losses = dict(STORES)
    for feature in own_features():
        losses |= feature.stores
    return losses


def _data_kind(name: str) -> str:
    return name.removesuffix(".json").replace("_", "-")


def _cache_kind(name: str) -> str:
    return f"caches/{name}"


def _item(kind: str, path: Path, loss: str) -> StoredItem:
    if is_link(path):
        loss = f"only the link; what it leads to stays ({loss})"
    return StoredItem(kind, str(path), path, measure(path), loss)


def _unknown(kind: str, path: Path) -> StoredItem:
    return StoredItem(kind, str(path), path, measure(path), _UNKNOWN_LOSS, _BY_HAND)


def _children(folder: Path) -> list[Path]:
    """What is in `folder`, with links to it followed, by name."""
    return [Path(entry.path) for entry in _entries(real_path(folder))]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
