"""The walls around the model's commands: whether one is possible here, and their keepers."""

import asyncio
import json
import os
import platform
import select
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from agent_tui.config import SandboxMode, Settings
from agent_tui.errors import ToolError
from agent_tui.paths import make_private_dir
from agent_tui.safe_paths import (
    distrust_programs_in,
    find_program,
    git_entry,
    is_folder,
    path_exists,
)
from agent_tui.tools.job_table import JobTable
from agent_tui.tools.processes.environment import with_git_settings
from agent_tui.tools.processes.keeper import Child, Confinement, ProcessKeeper
from agent_tui.tools.sandbox.backends import (
    backend_here,
    bwrap_argv,
    landlock_argv,
    link_home,
    make_cache_folders,
)
from agent_tui.tools.sandbox.beneath import remove_folder
from agent_tui.tools.sandbox.folders import GATES_BEGIN, Scratch, StandIns, write_versions
from agent_tui.tools.sandbox.hints import HiddenPlaces, WallView, paths_in
from agent_tui.tools.sandbox.home import (
    HomeView,
    find_hidden,
    furnish,
    home_of_account,
    make_links,
    own_program,
    program_folders,
    sockets_of_others,
    what_runs,
    without_sockets,
)
from agent_tui.tools.sandbox.mounts import (
    Mount,
    close_ways,
    islands_of,
    mounts_of,
    read_mount_points,
    relay,
)
from agent_tui.tools.sandbox.places import CACHE_VARIABLES, find_data_places, find_places
from agent_tui.tools.sandbox.plan import (
    TEMPORARY_PLACES,
    Backend,
    Border,
    Covers,
    SandboxPlan,
    WallFolders,
    existing_files,
    identify,
    plan_for,
)
from agent_tui.tools.sandbox.ports import WallPorts
from agent_tui.tools.sandbox.project_walk import REBUILT_FOLDERS
from agent_tui.tools.sandbox.proxy import NetworkGate
from agent_tui.tools.sandbox.seccomp import filter_program
from agent_tui.tools.sandbox.tool_settings import (
    find_keys_among,
    git_tokens,
    plain_git_settings,
    tool_settings,
)
from agent_tui.tools.sandbox.watch import ObeyedWatch

_PROBE_S: Final = 5.0
_STANDS_WITHIN_S: Final = 10.0
_GATE_WITHIN_S: Final = 5.0
_INFO, _FILTER = 100, 101
"""The numbers of bubblewrap's descriptors; see `Confinement`."""
_GIT_SETTINGS: Final = (("branch.autoSetupMerge", "false"),)
"""Without it ``git switch -c x origin/x`` and ``git worktree add`` fail: they write git's
config."""

_INSIDE: Final[Mapping[str, str]] = {
    "TMPDIR": "/tmp",
    "UV_LINK_MODE": "copy",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
"""Caches are separate mounts, and files cannot be linked across mounts. Git would end its search
for a repository at the stand-in for the home folder, and name it. Update checks of tools are not
worth a question about the network."""

_NOT_INSIDE: Final = (
    *("GIT_CONFIG_GLOBAL", "PIP_CONFIG_FILE", "NPM_CONFIG_USERCONFIG", "XDG_CONFIG_HOME"),
    *("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"),
)
"""Where settings, data, caches and logs are outside; inside, they are in the usual places of a
stand-in for the home folder, whatever disk they are on."""

_NEEDS: Final = "Install bubblewrap, or set sandbox to off."


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
        filter_program: The system call filter for a machine, as bubblewrap reads it.
        landlock_argv: The arguments that set up a wall if bubblewrap cannot.
    """

    gate: NetworkGate | None = None
    gate_program: Path | None = None
    watch: Callable[[Sequence[Path], bool], ObeyedWatch] | None = None
    filter_program: Callable[[str], bytes] = filter_program
    landlock_argv: Callable[[SandboxPlan], tuple[str, ...]] = landlock_argv


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is around the working folders.

    Args:
        home: The user's home folder.
        own_folders: Where this program keeps settings, sessions, logs and stand-ins; hidden.
        scratch_parent: Where the stand-ins for ``/tmp`` and `home` are created.
        environ: Where programs and toolchains are searched for.
        added: Other working folders.
        caches: See `Border`.
        hidden_places: What is hidden as a whole, besides home and temporary folders; the outermost
            paths, without links.
    """

    home: Path
    own_folders: tuple[Path, ...]
    scratch_parent: Path
    environ: Mapping[str, str]
    added: tuple[Path, ...] = ()
    caches: tuple[tuple[Path, Path], ...] = ()
    hidden_places: tuple[Path, ...] = field(default_factory=find_data_places)

    def unchecked(self) -> tuple[str, ...]:
        """How the real paths begin of what commands write and nobody looks at."""
        written = (self.scratch_parent, *(folder for _, folder in self.caches))
        return (*(f"{folder.resolve()}/" for folder in written), GATES_BEGIN, "/dev/shm/")


@dataclass(frozen=True, slots=True)
class SandboxState:
    """Which kind of wall is used; `problem` says why there is none though one is wanted."""

    backend: Backend
    problem: str = ""

    @property
    def is_on(self) -> bool:
        """Whether commands run inside a wall."""
        return self.backend != "none"


@dataclass(slots=True)
class _Wall:
    """A running wall.

    `pid` is the first process inside, by its id outside; 0 if the wall has no namespaces: mounts
    cannot be restored, and the network is the machine's. `port` is where the gate listens, 0 if
    there is none; `ports` exposes servers inside. `islands` are the mounts that may disappear.
    `ground` is what commands write, by device and inode: the wall keeps to it if something else is
    put in its place outside. `ways` end what was started besides the keeper.
    """

    keeper: ProcessKeeper
    plan: SandboxPlan
    pid: int
    islands: dict[Path, Mount]
    ground: dict[Path, tuple[int, int]]
    ways: AsyncExitStack = field(default_factory=AsyncExitStack)
    port: int = 0
    ports: WallPorts | None = None


class Sandbox:
    """Decides whether the model's commands run inside a wall, and manages the walls.

    A conversation has one for its commands and, in plan mode, a read-only one. All commands and
    jobs of a wall share its processes, its network and its ``/tmp``.
    """

    def __init__(
        self,
        mode: SandboxMode,
        around: Surroundings,
        parts: WallParts = WallParts(),
        *,
        keeper: ProcessKeeper | None = None,
        most_processes: int = Settings().max_processes,
    ) -> None:
        """Create a sandbox that has tried nothing yet.

        Args:
            mode: The setting.
            around: What is around the working folders.
            parts: What the walls consist of besides mounts.
            keeper: Starts the walls, outside; None for a separate one.
            most_processes: See `ProcessKeeper`.
        """
        self.mode: SandboxMode = mode
        self.parts = parts
        self._around = around
        self._outside = keeper or ProcessKeeper()
        self._most_processes = most_processes
        self._states: dict[Path, SandboxState] = {}
        self._hidden: tuple[Path, ...] | None = None
        self._walls: dict[tuple[Path, bool], _Wall] = {}
        self._turn = asyncio.Lock()
        self._trying = threading.Lock()
        caches = frozenset(path.relative_to(around.home).parts[0] for path, _ in around.caches)
        self._stand_ins = StandIns(around.scratch_parent, caches)
        self._watches: dict[Path, ObeyedWatch] = {}
        self._shown: dict[Path, tuple[Path, ...]] = {}
        self._hinted: set[Path] = set()
        self._looks: set[asyncio.Future[None]] = set()
        self._real: dict[Path, tuple[Path, ...]] = {}
        caches_written = (folder for _, folder in around.caches)
        self.expect(*around.added, *caches_written, around.scratch_parent)

    @property
    def home(self) -> Path:
        """The user's home folder."""
        return self._around.home

    def expect(self, *folders: Path) -> None:
        """Note that commands may write `folders`: we run no program that lies there.

        Not in a home folder: there is no sandbox in it, and the user's programs are.
        """
        if self.mode != "off":
            homes = self._homes()
            distrust_programs_in(
                folder
                for folder in folders
                if not any(home.is_relative_to(folder.resolve()) for home in homes)
            )

    def state(self, cwd: Path) -> SandboxState:
        """The kind of wall for commands in `cwd`. Blocking on first use."""
        if self.mode == "off":
            return SandboxState("none")
        if cwd not in self._states:
            with self._trying:  # the screen asks in a thread, and the first prompt waits
                if cwd not in self._states:
                    self.expect(cwd)
                    self._folders(cwd)
                    self._states[cwd] = self._try_backends(cwd)
        return self._states[cwd]

    def word(self, cwd: Path) -> str:
        """How commands in `cwd` run, in a word or two. Blocking on first use."""
        if self.mode == "off":
            return "sandbox off"
        match self.state(cwd).backend:
            case "bubblewrap":
                return "sandbox"
            case "landlock":
                return "landlock"
            case "none":
                return "no sandbox"

    def notice(self, cwd: Path) -> str:
        """A notice for the user about a folder in which no wall is possible; else empty."""
        if self.mode == "off" or not (why := self._protects_nothing(cwd)):
            return ""
        then = "The model cannot run commands" if self.mode == "on" else "Commands run unconfined"
        return f"{then}: {why}."

    def refusal(self, cwd: Path) -> str:
        """Why no command of the model may run in `cwd`; empty if one may. Blocking."""
        problem = self.state(cwd).problem
        if self.mode != "on" or not problem:
            return ""
        return f'commands run only in the sandbox (sandbox = "on"), but {problem}'

    def environ(
        self, cwd: Path, environ: Mapping[str, str], *, is_read_only: bool = False
    ) -> dict[str, str]:
        """The environment of commands inside, given the one outside."""
        wall = self._walls.get((cwd, is_read_only))
        inside = without_sockets(environ)
        for name in (*_NOT_INSIDE, *CACHE_VARIABLES):
            if name not in CACHE_VARIABLES or not self._may_write(cwd, inside.get(name, "")):
                inside.pop(name, None)
        inside |= _INSIDE
        if self.state(cwd).backend == "landlock" and wall is not None:
            inside |= _places_by_variable(wall.plan)
        if self.parts.gate is not None and wall is not None and wall.port:
            inside |= self.parts.gate.environ(inside, wall.port)
        return with_git_settings(inside, _GIT_SETTINGS)

    def _may_write(self, cwd: Path, folder: str) -> bool:
        """Whether commands in `cwd` may write `folder`, and what they write is found again.

        Without mounts, our own folder does not replace a cache by its full path.
        """
        caches = (
            place for place, own in self._around.caches if own == place or not self.is_coarse(cwd)
        )
        places = (*self._folders(cwd), *caches)
        path = Path(folder)
        return path.is_absolute() and any(map(path.resolve().is_relative_to, places))

    async def keeper(self, cwd: Path, *, is_read_only: bool = False) -> ProcessKeeper:
        """The keeper that starts commands inside the wall for `cwd`, which is set up or updated.

        Raises:
            ToolError: It cannot be set up, or has ended. Commands never run without it instead.
        """
        key = (cwd, is_read_only)
        async with self._turn:
            wall = self._walls.get(key)
            if wall is not None and not _stands(wall):
                await self._end(self._walls.pop(key))
                wall = None
            try:
                if wall is None:
                    self._walls[key] = wall = await self._stand_up(cwd, is_read_only=is_read_only)
                    self.strays()  # the links to what exists do not count
                await asyncio.to_thread(self._make_right, cwd, wall)
            except OSError as error:
                raise _fell(error.strerror or str(error)) from error
            return wall.keeper

    def scratch(self, cwd: Path) -> Scratch | None:
        """What replaces ``/tmp`` for commands in `cwd`; None if it is the machine's.

        Blocking on first use.
        """
        if self.state(cwd).backend != "bubblewrap":
            return None
        with suppress(OSError):  # then there is no wall, and its error says why
            shared = (*self._find_shown(cwd), self.home.resolve())
            return Scratch(self._stand_ins.scratch().resolve(), shared)
        return None

    def is_coarse(self, cwd: Path) -> bool:
        """Whether the wall for `cwd` can neither hide nor protect files in working folders."""
        return self.state(cwd).backend == "landlock"

    def shown_tokens(self, cwd: Path) -> tuple[str, ...]:
        """Tokens in git's settings that commands in `cwd` can read. Blocking."""
        walls = (wall for (folder, _), wall in self._walls.items() if folder == cwd)
        wall = next(walls, None) if self.is_coarse(cwd) else None
        return () if wall is None else git_tokens(wall.plan.read_only)

    def shows(self, cwd: Path, path: Path) -> bool:
        """Whether commands in `cwd` can read `path`, as far as hidden places are concerned.

        A file in the machine's ``/tmp`` counts as shown. Blocking on first use.

        Args:
            cwd: Where commands start.
            path: Absolute, links followed.
        """
        hidden = (*self._homes(), *self._places())
        if not self.state(cwd).is_on or not any(path.is_relative_to(place) for place in hidden):
            return True
        return any(path.is_relative_to(shown) for shown in self._find_shown(cwd))

    def _find_shown(self, cwd: Path) -> tuple[Path, ...]:
        """What of hidden places commands in `cwd` see. Blocking on first use."""
        if cwd not in self._shown:
            folders = self._folders(cwd)
            nowhere = WallFolders(self.home, self.home, self.home)
            runs = self._runs(self._view(folders))
            plan = plan_for(folders, self._border_of(folders), nowhere, readable=runs)
            self._shown[cwd] = (*plan.writable, *plan.readable)
        return self._shown[cwd]

    def _view(self, folders: Sequence[Path]) -> HomeView:
        runtime = Path("/run/user", str(os.getuid()))  # where fnm has its links to versions
        places = (*self._places(), *TEMPORARY_PLACES, runtime)
        return what_runs(self._homes(), places, folders, self._around.environ)

    async def follow(self, cwd: Path, jobs: JobTable) -> None:
        """Expose servers that `jobs` start, on the same loopback port outside."""
        if (wall := self._walls.get((cwd, False))) is not None and wall.ports is not None:
            await wall.ports.follow(jobs)

    def watch(self, cwd: Path) -> ObeyedWatch | None:
        """The watch on what commands in `cwd` leave: used before and after each command."""
        if self.parts.watch is not None and cwd not in self._watches:
            folders = (cwd.resolve(), *self._around.added)
            has_mounts = self.state(cwd).backend == "bubblewrap"
            self._watches[cwd] = self.parts.watch(folders, has_mounts)
        return self._watches.get(cwd)

    async def recover(self, cwd: Path) -> None:
        """Set aside what commands left in `cwd` that ran when a program was killed.

        Raises:
            ToolError: Our folder for it cannot be used.
        """
        watch = await asyncio.to_thread(self.watch, cwd)
        if watch is not None and self.state(cwd).is_on:
            await watch.recover()

    async def accept(self, cwd: Path, paths: Sequence[Path]) -> None:
        """Record that our tools wrote `paths` with approval, not a command."""
        if (watch := self._watches.get(cwd)) is not None:
            await watch.accept(paths)

    def look_again(self, watch: ObeyedWatch, command: str) -> None:
        """Check what a job, which ran `command`, has left. On the event loop."""
        look = asyncio.ensure_future(watch.end_job())
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)
        look.add_done_callback(lambda _look: watch.hidden.forget_command(command))

    def strays(self) -> list[str]:
        """What commands newly put into the stand-in for the home folder, and the user may miss."""
        return self._stand_ins.strays(self.home)

    def hidden_hint(self, cwd: Path, command: str, errors: str, *, is_error: bool) -> str:
        """A hint for the model about a path that commands in `cwd` cannot see. Blocking.

        Args:
            cwd: Where the command ran.
            command: What ran.
            errors: What it printed, as far as it reports errors.
            is_error: Whether it failed; otherwise the hint comes once for each folder.
        """
        plans = [wall.plan for (folder, _), wall in self._walls.items() if folder == cwd]
        laid = {place for plan in plans for place, _ in (*plan.links, *plan.caches)}
        homes, places = self._homes(), self._places()
        hidden = HiddenPlaces(self.home, homes, places, lambda path: self.shows(cwd, path), laid)
        view = self.view(cwd)
        failed = set(paths_in("", errors, view))
        for path in paths_in(command, errors, view):
            with suppress(OSError):
                folder = hidden.folder_to_name(path, cwd, has_failed=path in failed)
                if folder is not None and (is_error or folder not in self._hinted):
                    self._hinted.add(folder)
                    return hidden.hint(folder)
        return ""

    @property
    def refusals(self) -> int:
        """How many connections of commands were refused."""
        return 0 if self.parts.gate is None else self.parts.gate.refusals

    def view(self, cwd: Path) -> WallView:
        """What commands in `cwd` see, to explain failures."""
        walls = [wall for (folder, _), wall in self._walls.items() if folder == cwd]
        is_landlock = self.state(cwd).backend == "landlock"
        stand_in = os.fspath(walls[0].plan.home_stand_in) if walls and is_landlock else ""
        hidden = [
            path.name
            for wall in walls
            for path, mount in wall.islands.items()
            if mount.kind == "hidden" and _is_inside(path, wall.plan)
        ]
        entry = git_entry(cwd)
        is_within = entry is None or any(map(entry.is_relative_to, self._folders(cwd)))
        top = "" if entry is None or is_within else os.fspath(entry.parent)
        return WallView(os.fspath(self.home), hidden, stand_in, top)

    async def close_walls(self) -> None:
        """End everything inside, and its ``/tmp``: another conversation begins."""
        walls, self._walls = self._walls, {}
        for wall in walls.values():
            await self._end(wall)
        watches, self._watches = self._watches, {}
        for watch in watches.values():
            await watch.close()
        await asyncio.to_thread(self._stand_ins.remove)

    async def _end(self, wall: _Wall) -> None:
        await wall.ways.aclose()
        await asyncio.to_thread(wall.keeper.close)
        await asyncio.to_thread(remove_folder, wall.plan.gate)

    def _protects_nothing(self, cwd: Path) -> str:
        for folder in (cwd, *self._around.added):
            if any(home.is_relative_to(folder.resolve()) for home in self._homes()):
                return f"{folder} contains the home folder, so a sandbox would protect nothing"
            if any(folder.resolve().is_relative_to(own) for own in self._own_folders()):
                return f"{folder} belongs to agent-tui, so a sandbox would protect nothing"
        return ""

    def _try_backends(self, cwd: Path) -> SandboxState:
        """Try each kind of wall with a minimal plan."""
        if why := self._protects_nothing(cwd):
            return SandboxState("none", why)
        folders = (cwd, *self._around.added)
        own: Path | None = None
        if is_folder(self._around.scratch_parent):  # else looking would create it
            own = self._stand_ins.scratch().parent  # the next start removes what a killed one left
        with tempfile.TemporaryDirectory(prefix="agent-tui-", dir=own) as folder:
            plan = plan_for(
                folders,
                Border(self.home),
                WallFolders(Path(folder), Path(folder), Path(folder)),
                readable=own_program(),
            )
            return self._try_plan(plan, self._own_in(folders))

    def _try_plan(self, plan: SandboxPlan, own_inside: Sequence[Path]) -> SandboxState:
        def bubblewrap_problem() -> str:
            bwrap = find_program("bwrap", self._around.environ.get("PATH"))
            if bwrap is None:
                return "bubblewrap (bwrap) is not installed"
            said = self._run_in(bwrap_argv(bwrap, plan))
            return f"bubblewrap does not work here: {said}" if said else ""

        def landlock_problem() -> str:
            if own_inside:
                return f"Landlock cannot protect agent-tui's own files in {own_inside[0]}"
            said = self._run_in(self.parts.landlock_argv(plan))
            return f"Landlock does not work here: {said}" if said else ""

        found = backend_here(sys.platform, platform.machine(), bubblewrap_problem, landlock_problem)
        return SandboxState(*found)

    def _run_in(self, argv: Sequence[str]) -> str:
        """Why nothing runs after `argv`; empty if it does."""
        try:
            code, printed = self._outside.run(
                [*argv, "/bin/sh", "-c", ":"],
                cwd=Path(os.sep),
                environ={"PATH": self._around.environ.get("PATH", os.defpath)},
                timeout_s=_PROBE_S,
            )
        except (OSError, ToolError) as error:
            return str(error)
        said = printed.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return "" if code == 0 else said or f"exit code {code}"

    async def _stand_up(self, cwd: Path, *, is_read_only: bool) -> _Wall:
        """Start a wall, its keeper and the gate's end inside.

        Raises:
            ToolError: It cannot be set up.
            OSError: Its folders cannot be created.
        """
        backend = self.state(cwd).backend
        plan = await asyncio.to_thread(self._prepare_plan, cwd, is_read_only=is_read_only)
        ground = identify(plan.writable)
        islands = {mount.path: mount for mount in islands_of(plan)}
        pid = 0
        if backend == "bubblewrap":
            keeper, pid = await self._in_bubblewrap(plan)
        elif backend == "landlock":
            confinement = Confinement(self.parts.landlock_argv(plan), self._outside)
            keeper = ProcessKeeper(self._most_processes, confinement)
            keeper.start()
        else:
            raise ToolError("there is no sandbox here")
        wall = _Wall(keeper, plan, pid, islands, ground)
        try:
            async with wall.keeper.child_group(
                ["/bin/sh", "-c", ":"], cwd=plan.workspace, environ={}
            ) as child:
                async with asyncio.timeout(_STANDS_WITHIN_S):
                    await _all_of(child)
            if child.exit_code != 0:
                raise _fell("no command runs in it")
            await self._open_gate(wall)
        except (ToolError, TimeoutError) as error:
            await self._end(wall)
            raise _fell(str(error) or "it does not answer") from error
        except BaseException:
            await self._end(wall)
            raise
        return wall

    async def _in_bubblewrap(self, plan: SandboxPlan) -> tuple[ProcessKeeper, int]:
        """A keeper inside bubblewrap, and the first process there by its id outside."""
        bwrap = find_program("bwrap", self._around.environ.get("PATH")) or "bwrap"
        reading, writing = os.pipe()
        handles = {_INFO: writing}
        try:
            handles[_FILTER] = _in_memory(self.parts.filter_program(platform.machine()))
            argv = bwrap_argv(bwrap, plan, info=_INFO, seccomp=_FILTER)
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
                said = await asyncio.to_thread(self._run_in, bwrap_argv(bwrap, plan))
                raise _fell(said or "it ended at once")
        except BaseException:
            keeper.close()
            raise
        return keeper, pid

    async def _open_gate(self, wall: _Wall) -> None:
        """Start the process that listens inside for the gate, and wait until it is ready."""
        gate, program = self.parts.gate, self.parts.gate_program
        if gate is None or program is None:
            return
        folder, keeper, port = wall.plan.gate, wall.keeper, gate.port
        if not wall.pid:  # its loopback is the machine's, and it cannot open our sockets
            keeper, port = self._outside, _free_port()
        await gate.serve(folder, is_read_only=wall.plan.is_read_only)
        wall.ways.callback(gate.stop, folder)
        words = [sys.executable, "-I", "-S", os.fspath(program), os.fspath(folder), str(port)]
        child = await wall.ways.enter_async_context(
            keeper.child_group(words, cwd=folder, environ={})
        )
        output = child.read_until_exit()
        async with asyncio.timeout(_GATE_WITHIN_S):
            await anext(output, b"")
        if child.exit_code is not None:
            raise _fell("the way to the network cannot be opened")
        wall.port = port
        if wall.pid and not wall.plan.is_read_only:
            wall.ports = WallPorts(folder, wall.pid, port)
            wall.ways.callback(wall.ports.close)

    def _make_right(self, cwd: Path, wall: _Wall) -> None:
        """Restore mounts that a wall lost, and cover new paths. Blocking.

        Raises:
            OSError: The wall has ended.
            ToolError: Something cannot be mounted.
        """
        if not wall.pid:
            return
        mounted = read_mount_points(wall.pid)
        plan = self._plan_now(cwd, wall.plan)
        wanted = {mount.path: mount for mount in islands_of(plan)}
        # One that stays where it was; outside, a folder may be moved with the mounts on it.
        steady = {mount.path for mount in mounts_of(plan) if mount.path not in wanted}
        kept = {path for path, mount in wanted.items() if wall.islands.get(path) == mount}
        stale = {
            path
            for path in mounted - kept - steady
            if path in wall.islands or _is_inside(path, plan)
        }
        missing = [
            mount
            for path, mount in wanted.items()
            if (path not in mounted & kept or not stale.isdisjoint(path.parents))
            and path_exists(path)
        ]
        if stale or missing:
            said = relay(self._outside, wall.pid, missing, sorted(stale, reverse=True))
            mounted = read_mount_points(wall.pid)
            unlaid = (path for path in wanted if path not in mounted and path_exists(path))
            bare = [path for path in unlaid if not path.is_socket()]  # one may be new by now
            if said or bare:
                raise _fell(said or f"{bare[0]} cannot be covered")
        wall.islands = wanted

    def _prepare_plan(self, cwd: Path, *, is_read_only: bool) -> SandboxPlan:
        """The plan of a new wall, with its home stand-in prepared. Blocking."""
        folders = self._folders(cwd)
        for folder in folders:
            if folder.resolve() != folder:
                raise _fell(f"{folder} was replaced by a link")
            if not is_folder(folder):
                raise ToolError(f"{folder} is no longer there. Nothing was run.")
        workspace = folders[0]
        view = self._view(folders)
        for path in (self.home, cwd, *self._around.added):
            view.add(path)
        for path, folder in self._around.caches:
            if folder == path:
                view.add(path)
            else:
                make_private_dir(folder).chmod(0o700)  # which a command may have changed
        own = self._stand_ins.of_wall()
        home = self.home.resolve()
        settings = tool_settings(self.home, workspace, self._around.environ, self._outside)
        furnish(own.home_stand_in, home, view, settings)
        for place in TEMPORARY_PLACES:
            make_links(own.scratch, place, view)
        plan = plan_for(
            folders,
            self._border_of(folders),
            own,
            self._covers(cwd),
            readable=self._runs(view),
            is_read_only=is_read_only,
        )
        links, beside = tuple(view.links.items()), self._keys_beside(cwd, plan, view)
        among = find_keys_among(view.readable, program_folders(self._around.environ))
        keys = (path for path in among if not _is_inside(path, plan))
        hidden = tuple(dict.fromkeys((*plan.hidden, *beside, *existing_files(keys))))
        plan = replace(plan, hidden=hidden, beside=beside, links=links)
        plan = self._with_versions(cwd, plan)
        if self.state(cwd).backend == "landlock":
            link_home(plan)
        else:
            make_cache_folders(plan)
        close_ways(plan)
        return plan

    def _keys_beside(self, cwd: Path, plan: SandboxPlan, view: HomeView) -> tuple[Path, ...]:
        """The files with keys in folders that are shown for a program or a repository in them.

        If files in working folders cannot be hidden, then neither in the repository around them.
        """
        if (watch := self.watch(cwd)) is None:
            return ()
        folders = [
            path
            for path in plan.readable
            if not any(path.is_relative_to(managed) for managed in view.managed)
            and not any(path.is_relative_to(folder) for folder in plan.writable)
            and path.name not in REBUILT_FOLDERS
            and (not self.is_coarse(cwd) if _is_around(path, plan) else view.holds(path))
        ]
        watch.hidden.search_beside(folders, plan.writable)
        return watch.hidden.find_beside()

    def _plan_now(self, cwd: Path, before: SandboxPlan) -> SandboxPlan:
        """The current plan of a running wall, as far as it can still change."""
        covers = self._covers(cwd)
        kept = [path for path in before.hidden if not _is_inside(path, before)]
        outside = [path for path in kept if path not in before.beside]
        watch = self.watch(cwd)
        sockets = sockets_of_others(before.gate)  # they come and go, so no new wall's plan has them
        beside = () if watch is None else watch.hidden.find_beside()
        plan = plan_for(
            self._folders(cwd),
            Border(self.home, self._around.caches),
            WallFolders(before.home_stand_in, before.scratch, before.gate),
            replace(covers, hidden=(*outside, *covers.hidden, *sockets, *beside)),
            readable=before.readable,
            is_read_only=before.is_read_only,
        )
        return self._with_versions(cwd, plan)

    def _with_versions(self, cwd: Path, plan: SandboxPlan) -> SandboxPlan:
        """`plan`, in which git's versions of hidden files and its settings without tokens show."""
        watch = self.watch(cwd)
        settings = plain_git_settings(plan.read_only)
        versions = {**settings, **({} if watch is None else watch.hidden.versions)}
        hidden = tuple(dict.fromkeys((*plan.hidden, *settings)))
        return replace(plan, hidden=hidden, versions=write_versions(versions, plan.gate))

    def _covers(self, cwd: Path) -> Covers:
        """What is covered in working folders, given this program's environment and files."""
        watch = self.watch(cwd)
        covers = Covers() if watch is None else watch.covers
        if own := self._own_in(self._folders(cwd)):
            for folder in own:  # a command could create one that is missing
                make_private_dir(folder)
            covers = replace(covers, hidden=(*covers.hidden, *own))
        ours = Path(sys.prefix).resolve()
        if sys.prefix == sys.base_prefix or not any(f in ours.parents for f in self._folders(cwd)):
            return covers
        return replace(covers, read_only=(*covers.read_only, ours))

    def _own_folders(self) -> Iterator[Path]:
        return (folder.resolve() for folder in self._around.own_folders)

    def _own_in(self, folders: Iterable[Path]) -> tuple[Path, ...]:
        """This program's own folders in working `folders` and in the user's caches."""
        caches = (place for place, folder in self._around.caches if place == folder)
        working = [folder.resolve() for folder in (*folders, *caches)]
        own = self._own_folders()
        return tuple(each for each in own if any(folder in each.parents for folder in working))

    def _runs(self, view: HomeView) -> Iterable[Path]:
        """What exists of hidden places, without this program's own folders."""
        own = tuple(self._own_folders())
        runs = (*view.readable, *(path for path in own_program() if path not in view.shared))
        return (path for path in runs if not any(path.is_relative_to(o) for o in own))

    def _border_of(self, folders: Sequence[Path]) -> Border:
        """What is around the working `folders`. A hidden place in one is worked in."""
        if self._hidden is None:
            account = home_of_account()
            others = () if account is None or account == self.home.resolve() else (account,)
            own = self._around.own_folders
            self._hidden = (*own, *find_hidden(self._around.environ, self._homes()), *others)
        hidden = (
            place
            for place in (*self._hidden, *self._places())
            if not any(folder in place.parents for folder in folders)
        )
        return Border(self.home, self._around.caches, tuple(hidden))

    def _folders(self, cwd: Path) -> tuple[Path, ...]:
        """The working folders, with links resolved as before any command ran."""
        if cwd not in self._real:
            self._real[cwd] = tuple(each.resolve() for each in (cwd, *self._around.added))
        return self._real[cwd]

    def _places(self) -> tuple[Path, ...]:
        """The hidden places besides homes and temporary folders, without links."""
        around = self._around
        caches = (place for place, _ in around.caches)
        return find_places(self._homes(), around.hidden_places, around.environ, caches)

    def _homes(self) -> tuple[Path, ...]:
        account = home_of_account()
        homes = dict.fromkeys((self.home.resolve(), *(() if account is None else (account,))))
        return tuple(home for home in homes if home.name)


def _stands(wall: _Wall) -> bool:
    """Whether commands can run in it, in the folders that are there now.

    Its first process may have ended before its keeper does.
    """
    try:
        has_ended = wall.keeper.is_over or (wall.pid and not read_mount_points(wall.pid))
        return not has_ended and identify(wall.plan.writable) == wall.ground
    except OSError:
        return False


async def _all_of(child: Child) -> None:
    async for _ in child.read_until_exit():
        pass


def _is_inside(path: Path, plan: SandboxPlan) -> bool:
    return any(root in path.parents for root in plan.writable)


def _is_around(path: Path, plan: SandboxPlan) -> bool:
    return any(folder.is_relative_to(path) for folder in plan.writable)


def _fell(why: str) -> ToolError:
    return ToolError(f"The sandbox cannot be set up: {why}. Nothing was run. {_NEEDS}")


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


def _free_port() -> int:
    """A loopback port on which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _in_memory(content: bytes) -> int:
    handle = os.memfd_create("filter")
    os.write(handle, content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _places_by_variable(plan: SandboxPlan) -> dict[str, str]:
    """The variables for a wall that mounts nothing over the home folder and ``/tmp``."""
    return {"HOME": os.fspath(plan.home_stand_in), "TMPDIR": os.fspath(plan.scratch)}
