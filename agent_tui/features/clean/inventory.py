"""What the program stored on this machine: read from the disk, explained by who stores it."""

import os
import shlex
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from agent_tui import paths
from agent_tui.cli.stored import CACHES, STORES
from agent_tui.feature import StoredElsewhere, load_object, own_features
from agent_tui.safe_paths import is_folder, is_link, real_path
from agent_tui.sessions.store import TRASH

SESSIONS: Final = "sessions"
SETTINGS: Final = "settings"
LOG: Final = "log"
_LOCK: Final = ".lock"
_BLOCK_BYTES: Final = 512
"""The unit of ``st_blocks``, whatever the file system's own blocks are."""
_SESSIONS_LOSS: Final = "your conversations; cannot be made again"
_UNKNOWN_LOSS: Final = "unknown: this version of agent-tui did not store it"
_BY_HAND: Final = "Look at it, then delete it yourself."
_AROUND_LOSS: Final = "contains a folder that has its own line here"
_NOT_AS_A_WHOLE: Final = "Do not delete it as a whole."


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


def listed_kinds() -> frozenset[str]:
    """The kinds that the program can store, whether there is anything of them or not."""
    elsewhere = (kind for feature in own_features() for kind in feature.stores_elsewhere)
    return removable_kinds() | {SESSIONS, SETTINGS, *elsewhere}


def list_stored(sessions: Path) -> list[StoredItem]:
    """Everything that the program stored on this machine. Blocking.

    Args:
        sessions: The folder of the sessions. Those in the usual folders are listed, too.
    """
    places = (sessions, paths.default_session_dir(), paths.user_data_dir() / "sessions")
    roots = {real_path(place): place for place in reversed(places)}
    data, cache = real_path(paths.user_data_dir()), real_path(paths.user_cache_dir())
    others = {*roots, data, cache, real_path(paths.log_file().parent)}
    found = [*_session_items(sessions)]
    for real, root in roots.items():
        if real != real_path(sessions) and is_folder(root):
            found.append(_other_sessions(root))
    within = others | {real_path(paths.user_config_dir())}
    named = {name: (_data_kind(name), loss) for name, loss in _stores().items()}
    found += _items_in(paths.user_data_dir(), named, "data", within)
    named = {name: (_cache_kind(name), loss) for name, loss in CACHES.items()}
    found += _items_in(paths.user_cache_dir(), named, "caches", within)
    found += [*_log_items(), *_config_items(others), *_items_elsewhere()]
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
        removal = "agent-tui sessions delete SESSION, or agent-tui clean sessions --older-than 90d"
        usage = measure(real_path(root), frozenset({TRASH}))
        yield StoredItem(SESSIONS, str(root), root, usage, _SESSIONS_LOSS, removal)
        trash = root / TRASH
        if os.path.lexists(trash):
            loss = "sessions that you deleted; cannot be made again"
            yield _item(TRASH, trash, loss)


def _other_sessions(root: Path) -> StoredItem:
    """Sessions with their trash in a folder that another ``session_dir`` leaves aside."""
    option = f"--session-dir {shlex.quote(str(root))}"
    removal = f"agent-tui clean {option} sessions --older-than 90d"
    usage = measure(real_path(root))
    return StoredItem(SESSIONS, str(root), root, usage, _SESSIONS_LOSS, removal)


def _items_in(
    folder: Path, named: Mapping[str, tuple[str, str]], kind: str, others: Collection[Path]
) -> Iterator[StoredItem]:
    """What is in one of the program's folders.

    Args:
        folder: The folder.
        named: The kind of what the program stores there, and what its removal loses, by its name.
        kind: The kind of what it does not store.
        others: The real paths of folders that are listed on their own.
    """
    has_settings = real_path(folder) == real_path(paths.user_config_dir())
    for path in _children(folder):
        name = path.name.removesuffix(_LOCK)
        if real_path(path) in others:
            continue
        if any(other.is_relative_to(path) for other in others):
            usage = measure(path)
            yield StoredItem(kind, str(path), path, usage, _AROUND_LOSS, _NOT_AS_A_WHOLE)
        elif name in named:
            yield _item(named[name][0], path, named[name][1])
        elif has_settings:
            yield _settings(path)
        else:
            unknown = _cache_kind(path.name) if kind == "caches" else kind
            yield StoredItem(unknown, str(path), path, measure(path), _UNKNOWN_LOSS, _BY_HAND)


def _log_items() -> Iterator[StoredItem]:
    folder = paths.log_file().parent
    if os.path.lexists(folder):
        yield _item(LOG, folder, "messages about faults; not needed")


def _config_items(others: Collection[Path]) -> Iterator[StoredItem]:
    """The settings, except those in a folder of `others`, which are listed with what is there."""
    folder = paths.user_config_dir()
    real = real_path(folder)
    if not is_folder(folder) or real in others:
        return
    if any(other.is_relative_to(real) for other in others):
        yield from _items_in(folder, {}, SETTINGS, others)
    else:
        yield _settings(folder)


def _settings(path: Path) -> StoredItem:
    loss = "your settings, instructions and files; cannot be made again"
    removal = "You wrote them: delete them yourself."
    return StoredItem(SETTINGS, str(path), path, measure(real_path(path)), loss, removal)


def _items_elsewhere() -> Iterator[StoredItem]:
    for feature in own_features():
        for kind, function in feature.stores_elsewhere.items():
            listed = cast("Callable[[], Iterator[StoredElsewhere]]", load_object(function))
            for place, path, loss, removal in listed():
                usage = measure(path) if path else Usage()
                yield StoredItem(kind, place, path, usage, loss, removal)


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


def _children(folder: Path) -> list[Path]:
    """What is in `folder`, with links to it followed, by name."""
    return [Path(entry.path) for entry in _entries(real_path(folder))]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
