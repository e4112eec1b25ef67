"""The folders that stand in for others inside a conversation's walls; all blocking."""

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.file_locks import lock_descriptor
from agent_tui.paths import make_private_dir
from agent_tui.tools.sandbox.plan import WallFolders

_SHORT: Final = "/tmp"
"""Where the gate's sockets are: their names may have 107 bytes."""

_GATE: Final = "agent-tui-gate-"
_GATES: Final = "gates"
_HOME: Final = "home-"


class StandIns:
    """Made when first needed, and removed at the conversation's end or with this object.

    Walls share one for ``/tmp``, but each has a new one for the home folder: we write settings into
    it, and a command in another wall may have left links there.

    What a program that was killed has left is removed by the next: the kernel gives its lock back.

    Args:
        parent: Where they are made.
        unmissed: Names in the home folder under which tools keep what they can make again.
    """

    def __init__(self, parent: Path, unmissed: frozenset[str] = frozenset()) -> None:
        self._parent = parent
        self._unmissed = unmissed
        self._base: Path | None = None
        self._finish: weakref.finalize[..., StandIns] | None = None
        self._told: set[str] = set()

    def of_wall(self) -> WallFolders:
        """Those of a new wall.

        Raises:
            OSError: They cannot be made.
        """
        scratch = self.scratch()
        base = scratch.parent
        (base / _GATES).mkdir(mode=0o700, exist_ok=True)
        home = Path(tempfile.mkdtemp(prefix=_HOME, dir=base))
        gate = Path(tempfile.mkdtemp(prefix=_GATE, dir=_SHORT))
        (base / _GATES / gate.name).touch()
        return WallFolders(home, scratch, gate)

    def scratch(self) -> Path:
        """The one for ``/tmp``, which is made if need be.

        Raises:
            OSError: It cannot be made.
        """
        base = self._base = self._base or self._make()
        (base / "tmp").mkdir(mode=0o700, exist_ok=True)
        return base / "tmp"

    def strays(self, home: Path) -> list[str]:
        """What is new in the stand-ins for `home` since the last look.

        Tools keep much in hidden files that nobody misses; one that the person has, too, was
        perhaps meant to be theirs.
        """
        found: set[str] = set()
        if self._base is not None:
            with suppress(OSError):
                for path in self._base.glob(f"{_HOME}*/*"):
                    if not path.name.startswith(".") or (home / path.name).is_file():
                        found.add(path.name)
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
        lock = os.open(base, os.O_RDONLY)
        with suppress(OSError):
            lock_descriptor(lock)
        self._finish = weakref.finalize(self, _remove, base, lock)
        return base


def _remove_left(base: Path) -> None:
    """Remove the folders of a program that is no more."""
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


def _remove(base: Path, lock: int) -> None:
    """Remove `base` with what in it is closed for writing, and the gates that it names."""
    with suppress(OSError):
        for name in [path.name for path in (base / _GATES).iterdir()]:
            if name.startswith(_GATE):
                shutil.rmtree(Path(_SHORT, name), ignore_errors=True)
    for place, _, _ in os.walk(base):
        with suppress(OSError):
            Path(place).chmod(0o700)
    shutil.rmtree(base, ignore_errors=True)
    os.close(lock)
