"""Starts walls, keeps their mounts right, and ends them."""

import asyncio
import json
import os
import platform
import re
import select
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from agent_tui.errors import ToolError
from agent_tui.features.sandbox.backends import bwrap_argv, landlock_argv
from agent_tui.features.sandbox.beneath import remove_folder
from agent_tui.features.sandbox.landlock_launcher import NOTES
from agent_tui.features.sandbox.made_sockets import MadeSockets
from agent_tui.features.sandbox.mounts import (
    Mount,
    islands_of,
    mounts_of,
    read_mount_points,
    relay,
)
from agent_tui.features.sandbox.plan import Backend, SandboxPlan, identify
from agent_tui.features.sandbox.ports import WallPorts
from agent_tui.features.sandbox.proxy import NetworkGate
from agent_tui.features.sandbox.seccomp import filter_program
from agent_tui.features.sandbox.watch import ObeyedWatch
from agent_tui.safe_paths import find_program, path_exists
from agent_tui.tools.command_sandbox import setup_error
from agent_tui.tools.processes.keeper import Child, Confinement, ProcessKeeper

_STANDS_WITHIN_S: Final = 10.0
_GATE_WITHIN_S: Final = 5.0
_LOOK_EVERY_S: Final = 0.2
"""A look at the mounts takes 0.2 ms, and laying one 50 ms."""

_FIND_EVERY_S: Final = 0.5
_FIND_REST: Final = 20.0
"""A search of the project takes 6 ms per 1,000 folders, and at most a twentieth of the time."""

_INFO, _FILTER = 100, 101
"""The numbers of bubblewrap's descriptors; see `Confinement`."""


@dataclass(frozen=True, slots=True)
class WallParts:
    """What a wall consists of besides mounts.

    Args:
        gate: The way to the network; None for no network.
        gate_program: What listens inside for it: a script that gets the gate's folder and port, and
            prints something once it accepts connections.
        watch: Creates the watch on what commands leave in folders, which also says what is covered
            there; its flag says whether the wall can protect files in writable folders. None for no
            watch.
        was_killed: Whether a program may have been killed while its commands ran in a folder.
        killed_near: The folders in which that may be so, of those around a folder, in it, or with
            the same repository.
        waiting: A notice about files in a folder that wait for the user's answer; empty for none.
        filter_program: The system call filter for a machine, as bubblewrap reads it.
        landlock_argv: The arguments that set up a wall if bubblewrap cannot.
    """

    gate: NetworkGate | None = None
    gate_program: Path | None = None
    watch: Callable[[Sequence[Path], bool], ObeyedWatch] | None = None
    was_killed: Callable[[Path], bool] = lambda _cwd: True
    killed_near: Callable[[Path], Iterable[Path]] = lambda _cwd: ()
    waiting: Callable[[Path], str] = lambda _cwd: ""
    filter_program: Callable[[str], bytes] = filter_program
    landlock_argv: Callable[[SandboxPlan], tuple[str, ...]] = landlock_argv


@dataclass(slots=True)
class Wall:
    """A running wall.

    `pid` is the first process inside, by its id outside; 0 if the wall has no namespaces: mounts
    cannot be restored, and the network is the machine's. `port` is where the gate listens, 0 if
    there is none; `ports` exposes servers inside. `made` are the sockets of a wall whose loopback
    is the machine's. `islands` are the mounts that may disappear, and `hidden` what of the working
    folders was to be hidden when they were last extended.
    `covering` brings back those that are lost while commands run, and adds what is new, but for
    `uncovered` ones, which cannot be mounted where they are: by device and inode.
    `ground` is what commands write, by device and inode: the wall keeps to it if something else is
    put in its place outside. `ways` end what was started besides the keeper.
    """

    keeper: ProcessKeeper
    plan: SandboxPlan
    pid: int
    islands: dict[Path, Mount]
    ground: dict[Path, tuple[int, int]]
    hidden: tuple[Path, ...] = ()
    ways: AsyncExitStack = field(default_factory=AsyncExitStack)
    port: int = 0
    ports: WallPorts | None = None
    made: MadeSockets | None = None
    covering: asyncio.Task[None] | None = None
    uncovered: dict[Path, tuple[int, int] | None] = field(
        default_factory=dict[Path, tuple[int, int] | None]
    )
    _laying: threading.Lock = field(default_factory=threading.Lock)

    def stands(self) -> bool:
        """Whether commands can run in it, in the folders that are there now.

        Its first process may have ended before its keeper does.
        """
        try:
            has_ended = self.keeper.is_over or (self.pid and not read_mount_points(self.pid))
            return not has_ended and identify(self.plan.writable) == self.ground
        except OSError:
            return False

    def repair(self, plan: SandboxPlan, outside: ProcessKeeper) -> None:
        """Restore mounts that were lost, and cover what `plan` covers by now. Blocking.

        Args:
            plan: The plan as it is now.
            outside: Starts the process that mounts.

        Raises:
            OSError: The wall has ended.
            ToolError: Something cannot be mounted.
        """
        with self._laying:
            mounted = read_mount_points(self.pid)
            wanted = {mount.path: mount for mount in islands_of(plan)}
            # One that stays where it was; outside, a folder may be moved with the mounts on it.
            steady = {mount.path for mount in mounts_of(plan) if mount.path not in wanted}
            kept = {path for path, mount in wanted.items() if self.islands.get(path) == mount}
            stale = {
                path
                for path in mounted - kept - steady
                if path in self.islands or any(root in path.parents for root in plan.writable)
            }
            self._lay(wanted, mounted & kept, stale, outside)
            self.islands = wanted

    def keep_covered(
        self, outside: ProcessKeeper, find_more: Callable[[], Awaitable[SandboxPlan | None]]
    ) -> None:
        """Cover what has to be while commands run, as far as possible.

        A mount lies on a file, not on its path: it is lost when the user replaces the file. What is
        new has none yet.

        Args:
            outside: Starts the process that mounts.
            find_more: Returns the plan as it is by now if it covers more; else None.
        """
        if self.covering is None or self.covering.done():
            self.covering = asyncio.create_task(self._cover_all(outside, find_more))

    async def _cover_all(
        self, outside: ProcessKeeper, find_more: Callable[[], Awaitable[SandboxPlan | None]]
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_covered(outside))
            tasks.create_task(self._cover_more(find_more))

    async def _cover_more(self, find_more: Callable[[], Awaitable[SandboxPlan | None]]) -> None:
        """Note what is to be covered besides; `_cover_again` does it."""
        while True:
            began = time.monotonic()
            with suppress(OSError, ToolError):  # the next command says so
                if self.keeper.is_in_use and (plan := await find_more()) is not None:
                    await asyncio.to_thread(self._add_islands, plan)
            await asyncio.sleep(max(_FIND_EVERY_S, (time.monotonic() - began) * _FIND_REST))

    def _add_islands(self, plan: SandboxPlan) -> None:
        with self._laying:
            known = self.islands
            self.islands = known | {
                mount.path: mount for mount in islands_of(plan) if mount.path not in known
            }

    async def _keep_covered(self, outside: ProcessKeeper) -> None:
        with suppress(OSError), _open_mounts(self.pid) as table:  # else the next command says so
            changed = select.poll()
            changed.register(table, select.POLLPRI)
            while True:
                if self.keeper.is_in_use:
                    await asyncio.to_thread(self._cover_again, changed, outside)
                else:
                    await asyncio.sleep(_LOOK_EVERY_S)

    def _cover_again(self, changed: select.poll, outside: ProcessKeeper) -> None:
        """As `repair`, with what was covered when the last command began or is new since.

        The kernel says if one is lost (``proc_pid_mounts``), except when the user renames the file
        first.
        """
        changed.poll(_LOOK_EVERY_S * 1_000)
        with self._laying:
            mounted = read_mount_points(self.pid)
            lost = {
                path: mount
                for path, mount in self.islands.items()
                if path not in mounted and self.uncovered.get(path) != _identity(path)
            }
            try:
                self._lay(lost, mounted, (), outside)
            except ToolError:
                self._lay_each(lost, outside)

    def _lay_each(self, lost: Mapping[Path, Mount], outside: ProcessKeeper) -> None:
        """Have each of `lost` in place, and note those that cannot be: a link may be there.

        The next command says so.
        """
        for path, mount in lost.items():
            try:
                self._lay({path: mount}, read_mount_points(self.pid), (), outside)
            except ToolError:
                self.uncovered[path] = _identity(path)

    def _lay(
        self,
        wanted: Mapping[Path, Mount],
        laid: AbstractSet[Path],
        stale: Collection[Path],
        outside: ProcessKeeper,
    ) -> None:
        """Have the mounts `wanted` in place, of which some are `laid`, and lift `stale` ones."""
        missing = [
            mount
            for path, mount in wanted.items()
            if (path not in laid or not set(path.parents).isdisjoint(stale)) and path_exists(path)
        ]
        if stale or missing:
            said = relay(outside, self.pid, missing, sorted(stale, reverse=True))
            mounted = read_mount_points(self.pid)
            unlaid = (path for path in wanted if path not in mounted and path_exists(path))
            bare = [path for path in unlaid if not path.is_socket()]  # one may be new by now
            if said or bare:
                raise _setup_error(said or f"{bare[0]} cannot be covered", wanted)

    async def end(self) -> None:
        """End everything in it."""
        if self.covering is not None:
            self.covering.cancel()
        await self.ways.aclose()
        await asyncio.to_thread(self.keeper.close)
        await asyncio.to_thread(remove_folder, self.plan.gate)


class WallStarter:
    """Starts walls.

    Args:
        parts: What the next wall consists of besides mounts.
        outside: Starts them.
        path: Where bubblewrap is searched for, as in ``PATH``.
        most_processes: See `ProcessKeeper`.
        why_not: Tries a command; why it does not run, empty if it does.
    """

    def __init__(
        self,
        parts: Callable[[], WallParts],
        outside: ProcessKeeper,
        path: str | None,
        most_processes: int,
        why_not: Callable[[Sequence[str]], str],
    ) -> None:
        self._parts = parts
        self._outside = outside
        self._path = path
        self._most_processes = most_processes
        self._why_not = why_not

    async def start(self, plan: SandboxPlan, backend: Backend) -> Wall:
        """Start a wall, its keeper and the gate's end inside.

        Args:
            plan: What it allows.
            backend: Its kind.

        Raises:
            ToolError: It cannot be set up.
            OSError: The gate cannot be opened.
        """
        ground = identify(plan.writable)
        islands = {mount.path: mount for mount in islands_of(plan)}
        pid, made = 0, None
        if backend == "bubblewrap":
            keeper, pid = await self._in_bubblewrap(plan)
        elif backend == "landlock":
            keeper, made = self._in_landlock(plan)
        else:
            raise ToolError("there is no sandbox here")
        wall = Wall(keeper, plan, pid, islands, ground, made=made)
        if made is not None:
            wall.ways.callback(made.close)
        try:
            await self._try(wall, backend)
        except BaseException:
            await wall.end()
            raise
        return wall

    async def _try(self, wall: Wall, backend: Backend) -> None:
        """Run a command in a new wall, and open its way to the network.

        Raises:
            ToolError: Either fails.
            OSError: The gate cannot be opened.
        """
        try:
            async with wall.keeper.child_group(
                ["/bin/sh", "-c", ":"], cwd=wall.plan.workspace, environ={}
            ) as child:
                async with asyncio.timeout(_STANDS_WITHIN_S):
                    await _all_of(child)
            if child.exit_code != 0:
                raise ToolError("no command runs in it")
            await self._open_gate(wall)
        except (ToolError, TimeoutError) as error:
            said = await asyncio.to_thread(self._why_not, self._argv(wall.plan, backend))
            said = said or str(error) or "it does not answer"
            raise _setup_error(said, wall.islands) from error

    def _argv(self, plan: SandboxPlan, backend: Backend) -> tuple[str, ...]:
        """The arguments that set up a wall."""
        if backend == "bubblewrap":
            return bwrap_argv(self._bwrap(), plan)
        return self._parts().landlock_argv(plan)

    def _bwrap(self) -> str:
        return find_program("bwrap", self._path) or "bwrap"

    async def _in_bubblewrap(self, plan: SandboxPlan) -> tuple[ProcessKeeper, int]:
        """A keeper inside bubblewrap, and the first process there by its id outside."""
        reading, writing = os.pipe()
        handles = {_INFO: writing}
        try:
            handles[_FILTER] = _in_memory(self._parts().filter_program(platform.machine()))
            argv = bwrap_argv(self._bwrap(), plan, info=_INFO, seccomp=_FILTER)
            confinement = Confinement(argv, self._outside, handles)
            keeper = ProcessKeeper(self._most_processes, confinement)
            keeper.start()
        except BaseException:
            os.close(reading)
            raise
        finally:
            for handle in handles.values():
                os.close(handle)
        try:
            pid = await asyncio.to_thread(_first_process, reading)
            if not pid:
                said = await asyncio.to_thread(self._why_not, self._argv(plan, "bubblewrap"))
                covered = (mount.path for mount in islands_of(plan))
                raise _setup_error(said or "it ended at once", covered)
        except BaseException:
            keeper.close()
            raise
        return keeper, pid

    def _in_landlock(self, plan: SandboxPlan) -> tuple[ProcessKeeper, MadeSockets]:
        """A keeper inside Landlock, and the sockets that are made for what runs there."""
        made = MadeSockets()
        try:
            argv = self._argv(plan, "landlock")
            confinement = Confinement(argv, self._outside, {NOTES: made.notes})
            keeper = ProcessKeeper(self._most_processes, confinement)
            keeper.start()
        except BaseException:
            made.close()
            raise
        finally:
            made.close_notes()
        return keeper, made

    async def _open_gate(self, wall: Wall) -> None:
        """Let what runs inside reach the gate: mostly by a process there, which is awaited."""
        parts = self._parts()
        gate, program = parts.gate, parts.gate_program
        if gate is None or program is None:
            return
        folder, keeper, port = wall.plan.gate, wall.keeper, gate.port
        if wall.made is not None:
            wall.port = await gate.serve_on_loopback(wall.made, is_read_only=wall.plan.is_read_only)
            wall.ways.callback(gate.stop, wall.made)
            return
        await gate.serve(folder, is_read_only=wall.plan.is_read_only)
        wall.ways.callback(gate.stop, folder)
        words = [sys.executable, "-I", "-S", os.fspath(program), os.fspath(folder), str(port)]
        child = await wall.ways.enter_async_context(
            keeper.child_group(words, cwd=folder, environ={}, is_vital=True)
        )
        output = child.read_until_exit()
        async with asyncio.timeout(_GATE_WITHIN_S):
            await anext(output, b"")
        if child.exit_code is not None:
            raise ToolError("the way to the network cannot be opened")
        wall.port = port
        if wall.pid and not wall.plan.is_read_only:
            wall.ports = WallPorts(folder, wall.pid, port)
            wall.ways.callback(wall.ports.close)


def _setup_error(why: str, covered: Iterable[Path]) -> ToolError:
    """The error for a wall; if it names one of the paths `covered`, the user can move that."""
    named = (
        path for path in covered if re.search(rf"{re.escape(os.fspath(path))}(?![\w./-])", why)
    )
    return setup_error(why, max(named, default=None))


def _identity(path: Path) -> tuple[int, int] | None:
    """The device and inode of `path`, links not followed; None if it is not there."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _open_mounts(pid: int) -> IO[bytes]:
    return Path(f"/proc/{pid}/mountinfo").open("rb")


async def _all_of(child: Child) -> None:
    async for _ in child.read_until_exit():
        pass


def _first_process(reading: int) -> int:
    """The id of the first process inside, from bubblewrap; 0 if it is not reported in time."""
    said = b""
    waiting = select.poll()  # unlike select, for any number of open files
    waiting.register(reading, select.POLLIN)
    with os.fdopen(reading, "rb", 0) as pipe:
        while not said.rstrip().endswith(b"}"):
            if not waiting.poll(_STANDS_WITHIN_S * 1_000) or not (chunk := pipe.read(4_096)):
                return 0
            said += chunk
    with suppress(ValueError, KeyError, TypeError):
        return int(json.loads(said)["child-pid"])
    return 0


def _in_memory(content: bytes) -> int:
    handle = os.memfd_create("filter")
    os.write(handle, content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle
