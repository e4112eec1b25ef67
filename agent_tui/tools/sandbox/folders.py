"""The folders that stand in for others inside a conversation's walls; all blocking."""

import os
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.file_locks import lock_descriptor
from agent_tui.paths import make_private_dir
from agent_tui.tools.sandbox.plan import WallFolders

_SHORT: Final = "/tmp"
"""Where the gate's sockets are: their names may have 107 bytes."""

_GATE: Final = "agent-tui-net-"
_YOUNG_S: Final = 60.0
"""How old a gate without a lock has to be: between making one and locking it nothing is sure."""


class StandIns:
    """Made when first needed, and removed at the conversation's end or with this object.

    What a program that was killed has left is removed by the next: each is locked as long as its
    program lives, and then the kernel gives the lock back.

    Args:
        parent: Where they are made.
        unmissed: Names in the home folder under which tools keep what they can make again.
    """

    def __init__(self, parent: Path, unmissed: frozenset[str] = frozenset()) -> None:
        self._parent = parent
        self._unmissed = unmissed
        self._base: Path | None = None
        self._gates: dict[Path, int] = {}
        self._finish: weakref.finalize[..., StandIns] | None = None
        self._told: set[str] = set()

    def of_wall(self) -> WallFolders:
        """Those of a new wall: each has a gate of its own.

        Raises:
            OSError: They cannot be made.
        """
        base = self._base = self._base or self._make()
        for name in ("home", "tmp"):
            (base / name).mkdir(mode=0o700, exist_ok=True)
        for gone in [gate for gate in self._gates if not gate.exists()]:
            os.close(self._gates.pop(gone))
        gate = Path(tempfile.mkdtemp(prefix=_GATE, dir=_SHORT))
        self._gates[gate] = _locked(gate)
        return WallFolders(base / "home", base / "tmp", gate)

    def strays(self) -> list[str]:
        """What is new in the stand-in for the home folder since the last look, unless hidden."""
        found: set[str] = set()
        if self._base is not None:
            with suppress(OSError):
                names = (path.name for path in (self._base / "home").iterdir())
                found = {name for name in names if not name.startswith(".")}
        fresh = sorted(found - self._told - self._unmissed)
        self._told |= found
        return fresh

    def remove(self) -> None:
        """Remove them all."""
        if self._finish is not None:
            self._finish()
        self._base = self._finish = None
        self._told = set()

    def _make(self) -> Path:
        try:
            parent = make_private_dir(self._parent)
            for left in parent.iterdir():
                _remove_left(left)
            base = Path(tempfile.mkdtemp(prefix="wall-", dir=parent))
        except OSError:  # a read-only home; one in the system's folder does as well
            base = Path(tempfile.mkdtemp(prefix="agent-tui-"))
        for gate in Path(_SHORT).glob(f"{_GATE}*"):
            _remove_left_gate(gate)
        self._finish = weakref.finalize(self, _remove_all, base, _locked(base), self._gates)
        return base


def _locked(folder: Path) -> int:
    lock = os.open(folder, os.O_RDONLY)
    with suppress(OSError):
        lock_descriptor(lock)
    return lock


def _lock_of_nobody(folder: Path) -> int | None:
    """The lock on `folder`, if the program that made it is no more."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    with suppress(OSError):
        if lock_descriptor(lock):
            return lock
    os.close(lock)
    return None


def _remove_left(base: Path) -> None:
    """Remove the folders of a program that is no more."""
    if (lock := _lock_of_nobody(base)) is not None:
        _remove(base, lock)


def _remove_left_gate(gate: Path) -> None:
    """Remove a gate of a program that is no more, if it is ours."""
    with suppress(OSError):
        status = gate.lstat()
        is_ours = status.st_uid == os.geteuid() and status.st_mtime < time.time() - _YOUNG_S
        if is_ours and (lock := _lock_of_nobody(gate)) is not None:
            _remove(gate, lock)


def _remove_all(base: Path, lock: int, gates: dict[Path, int]) -> None:
    while gates:
        _remove(*gates.popitem())
    _remove(base, lock)


def _remove(folder: Path, lock: int) -> None:
    """Remove `folder`, with what in it is closed for writing."""
    for place, _, _ in os.walk(folder):
        with suppress(OSError):
            Path(place).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
