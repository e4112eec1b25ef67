"""Folders that replace others inside a conversation's walls, and what tools outside call them."""

import hashlib
import os
import secrets
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from agent_tui.features.sandbox.beneath import (
    folder_of,
    open_up,
    remove_folder,
    write_at,
)
from agent_tui.features.sandbox.kept_home import HOMES, KeptHome, take_kept_home
from agent_tui.features.sandbox.plan import WallFolders
from agent_tui.file_locks import lock_descriptor
from agent_tui.paths import make_private_dir
from agent_tui.safe_paths import is_file, is_folder, is_link, resolve_path
from agent_tui.tools.base import TEMPORARY_PLACES

_SHORT: Final = "/tmp"
"""Where the gate's sockets are; their paths are limited to 107 bytes."""

_GATE: Final = "agent-tui-gate-"
GATES_BEGIN: Final = f"{_SHORT}/{_GATE}"
"""How the paths of the gates' folders begin, which commands write."""
_GATES: Final = "gates"
_HOME: Final = "home-"


def write_versions(
    versions: Mapping[Path, tuple[bytes, int]], folder: Path
) -> tuple[tuple[Path, Path], ...]:
    """Write what is shown in place of hidden files into `folder`, which commands see and may write.

    Args:
        versions: The content and the mode of each.
        folder: Where.

    Returns:
        Each hidden file, and the file that is shown.

    Raises:
        OSError: It cannot be written.
    """
    written: list[tuple[Path, Path]] = []
    for path, (content, mode) in versions.items():
        file = folder / f"{hashlib.sha256(content).hexdigest()}-{mode:o}"
        if is_link(file) or not is_file(file):
            with folder_of(file, [folder]) as opened:
                if is_folder(file):  # a command made it
                    names = file.name, secrets.token_hex(8)
                    os.rename(*names, src_dir_fd=opened, dst_dir_fd=opened)
                write_at(opened, file.name, content, mode)
        written.append((path, file))
    return tuple(written)


class StandIns:
    """Created when first needed, and removed when the conversation or this object ends.

    Walls share one for ``/tmp``, but each has a new one for the home folder: we write settings into
    it, and a command in another wall may have left links there.

    The next program removes what a killed one left: the kernel releases its lock.

    Args:
        parent: Where they are created.
        unmissed: Names in the home folder under which tools keep what they can recreate.
    """

    def __init__(self, parent: Path, unmissed: frozenset[str] = frozenset()) -> None:
        self._parent = parent
        self._unmissed = unmissed
        self._base: Path | None = None
        self._finish: weakref.finalize[..., StandIns] | None = None
        self._told: set[str] = set()
        self._kept: dict[Path, KeptHome] = {}

    def of_wall(self) -> WallFolders:
        """Create the folders of a new wall.

        Raises:
            OSError: They cannot be created.
        """
        scratch = self.scratch()
        base = scratch.parent
        (base / _GATES).mkdir(mode=0o700, exist_ok=True)
        home = Path(tempfile.mkdtemp(prefix=_HOME, dir=base))
        gate = Path(tempfile.mkdtemp(prefix=_GATE, dir=_SHORT))
        (base / _GATES / gate.name).touch()
        return WallFolders(home, scratch, gate)

    def kept_home(self, working_folder: Path) -> KeptHome | None:
        """Where the stand-in for the home folder stays, once it is finished. Blocking.

        Args:
            working_folder: Without links.

        Returns:
            The place, which this object has until `remove`; None if none is to be had.
        """
        if working_folder not in self._kept:
            kept = take_kept_home(self._parent / HOMES, working_folder)
            if kept is None:
                return None
            self._kept[working_folder] = kept
        return self._kept[working_folder]

    def scratch(self) -> Path:
        """The folder for ``/tmp``, created if necessary.

        Raises:
            OSError: It cannot be created.
        """
        base = self._base = self._base or self._make()
        (base / "tmp").mkdir(mode=0o700, exist_ok=True)
        return base / "tmp"

    def strays(self, home: Path) -> list[str]:
        """What is new in the stand-ins for `home` since the last call.

        Tools keep many unimportant hidden files there; one that also exists in the user's home may
        have been meant for it.
        """
        found: set[str] = set()
        homes = [kept.home for kept in self._kept.values()]
        with suppress(OSError):
            homes += [] if self._base is None else self._base.glob(f"{_HOME}*")
        for stand_in in homes:
            with suppress(OSError):
                for path in stand_in.iterdir():
                    if not path.name.startswith(".") or (home / path.name).is_file():
                        found.add(path.name)
        fresh = sorted(found - self._told - self._unmissed)
        self._told |= found
        return fresh

    def remove(self) -> None:
        """Remove all of them."""
        if self._finish is not None:
            self._finish()
        self._base = self._finish = None
        self._told = set()
        self._kept = {}

    def _make(self) -> Path:
        try:
            parent = make_private_dir(self._parent)
            for left in parent.iterdir():
                if left.name != HOMES:
                    _remove_left(left)
            base = Path(tempfile.mkdtemp(prefix="wall-", dir=parent))
        except OSError:  # a read-only home; the system's folder works too
            base = Path(tempfile.mkdtemp(prefix="agent-tui-"))
        lock = os.open(base, os.O_RDONLY)
        with suppress(OSError):
            lock_descriptor(lock)
        self._finish = weakref.finalize(self, _remove, base, lock, self._kept)
        return base


def _remove_left(base: Path) -> None:
    """Remove the folders of a program that has ended."""
    with suppress(OSError):
        lock = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            is_left = lock_descriptor(lock)
        except OSError:
            is_left = False
        if is_left:
            _remove(base, lock)
        else:
            os.close(lock)


def _remove(base: Path, lock: int, kept: Mapping[Path, KeptHome] = MappingProxyType({})) -> None:
    """Remove `base` with all folders that commands closed in it, and the gates that it names.

    What is in `kept` is left.
    """
    for home in kept.values():
        home.leave()
    for folder in (base, base / _GATES):
        with suppress(OSError), folder_of(folder, (folder.parent,)) as around:
            open_up(around, folder.name)
    with suppress(OSError):
        for name in [path.name for path in (base / _GATES).iterdir()]:
            if name.startswith(_GATE):
                remove_folder(Path(_SHORT, name))
    remove_folder(base)
    os.close(lock)


@dataclass(frozen=True, slots=True)
class Scratch:
    """The folder that commands see as ``/tmp``, so that all tools mean the same by that name.

    Args:
        folder: Its path, without links.
        shared: What lies in ``/tmp`` and is the same for commands, such as working folders.
    """

    folder: Path
    shared: tuple[Path, ...] = ()

    def real(self, path: Path, *, to_read: bool = False) -> Path:
        """The real location of `path`, links followed.

        Args:
            path: Absolute.
            to_read: Whether a file that only the machine's ``/tmp`` has, not commands, stays there.

        Raises:
            OSError: Links form a loop.
        """
        around = next((folder for folder in TEMPORARY_PLACES if path.is_relative_to(folder)), None)
        if around is None or any(path.is_relative_to(shared) for shared in self.shared):
            return path
        mine = self.folder / path.relative_to(around)
        if to_read and os.path.lexists(path) and not os.path.lexists(mine):
            return path
        return resolve_path(mine, self.folder)

    def holds(self, path: Path) -> bool:
        """Whether `path`, links followed, is in it."""
        return path.is_relative_to(self.folder)

    def name_inside(self, path: Path) -> Path:
        """The path under which commands see `path`."""
        return TEMPORARY_PLACES[0] / path.relative_to(self.folder) if self.holds(path) else path
