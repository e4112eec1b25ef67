"""Walls for tests: whether one can stand on this machine, and running commands in one."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from agent_tui.cli.command_sandbox import SandboxHost
from agent_tui.config import Settings
from agent_tui.features.sandbox.hidden import HiddenFiles
from agent_tui.features.sandbox.plan import Covers
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.features.sandbox.services import build_sandbox
from agent_tui.features.sandbox.settings import SandboxMode
from agent_tui.features.sandbox.wall import WallParts
from agent_tui.features.sandbox.wall_planner import Surroundings
from agent_tui.features.sandbox.watch import ObeyedWatch
from agent_tui.tools.processes.keeper import ProcessKeeper

_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_CREATE_RULESET_VERSION = 1


@cache
def has_bwrap() -> bool:
    """Whether bubblewrap is installed and may make namespaces here."""
    try:
        tried = subprocess.run(
            ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"],
            capture_output=True,
        )
    except OSError:
        return False
    return tried.returncode == 0


@cache
def landlock_abi() -> int:
    """This kernel's version of Landlock; 0 for none."""
    if sys.platform != "linux":
        return 0
    version = ctypes.CDLL(None).syscall(
        _LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_CREATE_RULESET_VERSION
    )
    return max(0, int(version))


def has_landlock() -> bool:
    """Whether the kernel has Landlock."""
    return landlock_abi() > 0


needs_bwrap = pytest.mark.skipif(not has_bwrap(), reason="bubblewrap does not work here")
needs_landlock = pytest.mark.skipif(not has_landlock(), reason="the kernel has no Landlock")


class FixedWatch(ObeyedWatch):
    """A watch that looks at nothing, and has covered what the test says."""

    def __init__(self, covers: Covers) -> None:
        self._covers = covers
        self.hidden = HiddenFiles({}, ProcessKeeper())

    @property
    def covers(self) -> Covers:
        return self._covers

    @covers.setter
    def covers(self, covers: Covers) -> None:
        self._covers = covers

    async def hide_new_keys(self) -> None:
        """The test says what is hidden."""

    async def close(self) -> None:
        """Nothing was begun."""


def covering(*, hidden: tuple[Path, ...] = (), read_only: tuple[Path, ...] = ()) -> WallParts:
    """Parts of a wall that hides and protects these paths in working folders."""
    watch = FixedWatch(Covers(read_only, hidden=hidden))
    return WallParts(watch=lambda _folders, _has_mounts: watch)


def watching(own: Path) -> WallParts:
    """Parts of a wall whose working folders are watched as the program does it, from `own`."""

    def watch(folders: Sequence[Path], has_mounts: bool) -> ObeyedWatch:
        keeper, environ = ProcessKeeper(), {"PATH": os.defpath}
        return ObeyedWatch(folders, own, keeper=keeper, environ=environ, has_mounts=has_mounts)

    return WallParts(watch=watch)


def make_sandbox(
    folder: Path, mode: SandboxMode = "on", parts: WallParts | None = None, **around: object
) -> Sandbox:
    """A sandbox whose home folder and stand-ins are in `folder`.

    Args:
        folder: Has ``home`` in it, or not yet.
        mode: The setting.
        parts: What its walls are made of besides mounts.
        around: Fields of `Surroundings` that are to be others.
    """
    home = folder / "home"
    home.mkdir(exist_ok=True)
    known = Surroundings(
        home=home,
        own_folders=(),
        scratch_parent=folder / "walls",
        environ={"PATH": os.defpath, "HOME": str(home)},
    )
    return Sandbox(mode, replace(known, **around), parts or WallParts())


def program_sandbox(
    settings: Settings,
    environ: Mapping[str, str],
    added: tuple[Path, ...] = (),
    *,
    keeper: ProcessKeeper | None = None,
) -> Sandbox:
    """The sandbox as the program makes it."""
    return build_sandbox(SandboxHost(settings, environ, added, keeper))


async def run_inside(
    sandbox: Sandbox, cwd: Path, command: str, *, is_read_only: bool = False
) -> tuple[int | None, str]:
    """How `command` ended inside the wall for `cwd`, and all that it printed."""
    keeper = await sandbox.keeper(cwd, is_read_only=is_read_only)
    environ = sandbox.environ(cwd, {"PATH": os.defpath, "HOME": str(sandbox.home)})
    printed = b""
    words = ["/bin/sh", "-c", command]
    async with keeper.child_group(words, cwd=cwd, environ=environ) as child:
        async for chunk in child.read_until_gone():
            printed += chunk
    return child.exit_code, printed.decode()
