"""The walls around the model's commands: whether one is possible here, and their keepers."""

import asyncio
import os
import platform
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from agent_tui.cli.command_sandbox import ProgramSandbox
from agent_tui.config import Settings
from agent_tui.errors import ToolError
from agent_tui.features.sandbox.backends import backend_here, bwrap_argv, is_there, landlock_environ
from agent_tui.features.sandbox.folders import Scratch, StandIns
from agent_tui.features.sandbox.hints import HiddenPlaces, WallView, paths_in
from agent_tui.features.sandbox.home import own_program, without_sockets
from agent_tui.features.sandbox.places import CACHE_VARIABLES
from agent_tui.features.sandbox.plan import Backend, Border, SandboxPlan, WallFolders, plan_for
from agent_tui.features.sandbox.settings import SandboxMode
from agent_tui.features.sandbox.tool_settings import git_tokens
from agent_tui.features.sandbox.wall import Wall, WallParts, WallStarter
from agent_tui.features.sandbox.wall_planner import Surroundings, WallPlanner, is_inside
from agent_tui.features.sandbox.watch import ObeyedWatch
from agent_tui.safe_paths import (
    distrust_programs_in,
    find_program,
    git_entry,
    is_folder,
    real_path,
    show_name,
)
from agent_tui.tools.base import TEMPORARY_PLACES
from agent_tui.tools.command_sandbox import setup_error
from agent_tui.tools.held_files import HeldFiles
from agent_tui.tools.job_table import JobTable
from agent_tui.tools.processes.environment import with_git_settings
from agent_tui.tools.processes.keeper import ProcessKeeper

_PROBE_S: Final = 5.0
_MOST_HINTS: Final = 3
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


@dataclass(frozen=True, slots=True)
class SandboxState:
    """Which kind of wall is used; `problem` says why there is none though one is wanted."""

    backend: Backend
    problem: str = ""

    @property
    def is_on(self) -> bool:
        """Whether commands run inside a wall."""
        return self.backend != "none"


class Walls(ProgramSandbox):
    """Decides whether the model's commands run inside a wall, and manages the walls.

    A conversation has one for its commands and, in plan mode, a read-only one. All commands and
    jobs of a wall share its processes, its network and its ``/tmp``.
    """

    def __init__(
        self,
        mode: SandboxMode,
        around: Surroundings,
        parts: WallParts | None = None,
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
        self.parts = parts or WallParts()
        self._around = around
        self._outside = keeper or ProcessKeeper()
        self._states: dict[Path, SandboxState] = {}
        self._walls: dict[tuple[Path, bool], Wall] = {}
        self._turn = asyncio.Lock()
        self._trying = threading.Lock()
        caches = frozenset(path.relative_to(around.home).parts[0] for path, _ in around.caches)
        self._stand_ins = StandIns(around.scratch_parent, caches)
        self._watches: dict[Path, ObeyedWatch] = {}
        self._hinted: set[Path] = set()
        self._looks: set[asyncio.Future[None]] = set()
        self._planner = WallPlanner(
            around, self._outside, self._stand_ins, self.watch, self.is_coarse
        )
        path = around.environ.get("PATH")
        self._starter = WallStarter(
            lambda: self.parts, self._outside, path, most_processes, self._run_in
        )
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
            homes = self._planner.homes()
            distrust_programs_in(
                folder
                for folder in folders
                if not any(home.is_relative_to(real_path(folder)) for home in homes)
            )

    def is_on(self, cwd: Path) -> bool:
        """Whether commands in `cwd` run inside a wall. Blocking on first use."""
        return self.state(cwd).is_on

    def problem(self, cwd: Path) -> str:
        """Why there is no wall in `cwd` though one is wanted; else empty. Blocking."""
        return self.state(cwd).problem

    def state(self, cwd: Path) -> SandboxState:
        """The kind of wall for commands in `cwd`. Blocking on first use."""
        if self.mode == "off":
            return SandboxState("none")
        if cwd not in self._states:
            with self._trying:  # the screen asks in a thread, and the first prompt waits
                if cwd not in self._states:
                    self.expect(cwd)
                    self._planner.folders(cwd)
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
        """A notice for the user about a folder in which no wall is possible, or files wait."""
        if self.mode == "off":
            return ""
        if not (why := self._planner.why_useless(cwd)):
            return self.parts.waiting(cwd)
        then = "The model cannot run commands" if self.mode == "on" else "Commands run unconfined"
        return f"{then}: {why}."

    def why_useless(self, cwd: Path) -> str:
        """Why a wall for `cwd` would protect nothing; empty if it protects something."""
        return self._planner.why_useless(cwd)

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
            inside |= landlock_environ(wall.plan, inside)
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
        places = (*self._planner.folders(cwd), *caches)
        path = Path(folder)
        return path.is_absolute() and any(map(real_path(path).is_relative_to, places))

    async def keeper(self, cwd: Path, *, is_read_only: bool = False) -> ProcessKeeper:
        """The keeper that starts commands inside the wall for `cwd`, which is set up or updated.

        Raises:
            ToolError: It cannot be set up, or has ended. Commands never run without it instead.
        """
        key = (cwd, is_read_only)
        async with self._turn:
            wall = self._walls.get(key)
            if wall is not None and not wall.stands():
                await self._walls.pop(key).end()
                wall = None
            try:
                if wall is None:
                    plan = await asyncio.to_thread(
                        self._planner.plan_new, cwd, is_read_only=is_read_only
                    )
                    self._walls[key] = wall = await self._starter.start(
                        plan, self.state(cwd).backend
                    )
                    self.strays()  # the links to what exists do not count
                if wall.pid:
                    await asyncio.to_thread(self._repair, cwd, wall)
                    wall.keep_covered(self._outside, partial(self._find_more, cwd, wall))
            except OSError as error:
                raise setup_error(error.strerror or str(error)) from error
            return wall.keeper

    async def _find_more(self, cwd: Path, wall: Wall) -> SandboxPlan | None:
        """The plan of a running wall if the user has written a file with a key; else None."""
        if (watch := self.watch(cwd)) is None:
            return None
        await watch.hide_new_keys()
        if (hidden := watch.covers.hidden) == wall.hidden:
            return None
        async with self._turn:
            plan = await asyncio.to_thread(self._planner.plan_again, cwd, wall.plan, wall.pid)
        wall.hidden = hidden
        return plan

    def _repair(self, cwd: Path, wall: Wall) -> None:
        wall.repair(self._planner.plan_again(cwd, wall.plan, wall.pid), self._outside)

    def scratch(self, cwd: Path) -> Scratch | None:
        """What replaces ``/tmp`` for commands in `cwd`; None if it is the machine's.

        Blocking on first use.
        """
        if self.state(cwd).backend != "bubblewrap":
            return None
        with suppress(OSError):  # then there is no wall, and its error says why
            shared = (*self._planner.find_shown(cwd), real_path(self.home))
            return Scratch(real_path(self._stand_ins.scratch()), shared)
        return None

    def temporary_folders(self, cwd: Path) -> Sequence[Path] | None:
        """The folders for temporary files that commands in `cwd` write; None without a wall.

        By the names that tools use: only a wall that has mounts shows its own as ``/tmp``. Blocking
        on first use.
        """
        match self.state(cwd).backend:
            case "bubblewrap":
                return TEMPORARY_PLACES
            case "landlock":
                with suppress(OSError):  # then there is no wall, and its error says why
                    return (real_path(self._stand_ins.scratch()),)
                return ()
            case "none":
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
        """Whether commands in `cwd` can read `path`, as far as the place decides that.

        A file in the machine's ``/tmp`` counts as shown. Blocking on first use.

        Args:
            cwd: Where commands start.
            path: Absolute, links followed.
        """
        state, hidden = self.state(cwd), (*self._planner.homes(), *self._planner.places())
        is_hidden = not is_there(path, state.backend) or any(map(path.is_relative_to, hidden))
        if not state.is_on or not is_hidden:
            return True
        shown = [*self._planner.find_shown(cwd)]
        if state.backend == "landlock":
            shown += self.temporary_folders(cwd) or ()
        return any(map(path.is_relative_to, shown))

    async def follow(self, cwd: Path, jobs: JobTable) -> None:
        """Expose servers that `jobs` start, on the same loopback port outside."""
        if (wall := self._walls.get((cwd, False))) is not None and wall.ports is not None:
            await wall.ports.follow(jobs)

    def watch(self, cwd: Path) -> ObeyedWatch | None:
        """The watch on what commands in `cwd` leave: used before and after each command."""
        if self.parts.watch is not None and cwd not in self._watches:
            folders = (real_path(cwd), *self._around.added)
            has_mounts = self.state(cwd).backend == "bubblewrap"
            self._watches[cwd] = self.parts.watch(folders, has_mounts)
        return self._watches.get(cwd)

    async def recover(self, cwd: Path) -> None:
        """Set aside what commands left in `cwd` that ran when a program was killed.

        Also in other folders of the repository: what git follows there, it follows here, too.

        Raises:
            ToolError: Our folder for it cannot be used.
        """
        own = real_path(cwd)
        near = await asyncio.to_thread(lambda: {*self.parts.killed_near(own)} - {own})
        places = [cwd] if await asyncio.to_thread(self.parts.was_killed, cwd) else []
        for place in (*places, *filter(is_folder, sorted(near))):
            watch = await asyncio.to_thread(self.watch, place)
            if watch is None or not self.state(place).is_on:
                continue
            held = await watch.recover()
            if place in near and (here := await asyncio.to_thread(self.watch, cwd)) is not None:
                here.tell(each.outcome(show_name(str(each.path))) for each in held)

    async def accept(self, cwd: Path, written: Mapping[Path, bytes | None]) -> None:
        """Record what our tools wrote with approval, not a command; None for a deleted file."""
        if (watch := self._watches.get(cwd)) is not None:
            await watch.accept(written)

    def look_again(self, watch: ObeyedWatch, command: str) -> None:
        """Check what a job, which ran `command`, has left. On the event loop."""
        look = asyncio.ensure_future(watch.end_job())
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)
        look.add_done_callback(lambda _look: watch.hidden.forget_command(command))

    def strays(self) -> list[str]:
        """What commands newly put into the stand-in for the home folder, and the user may miss."""
        return self._stand_ins.strays(self.home)

    def hidden_hints(
        self, cwd: Path, command: str, errors: str, *, is_error: bool
    ) -> Sequence[str]:
        """Hints for the model about paths that commands in `cwd` cannot see, at most three.

        Blocking.

        Args:
            cwd: Where the command ran.
            command: What ran.
            errors: What it printed, as far as it reports errors.
            is_error: Whether it failed; otherwise the hint comes once for each folder.
        """
        plans = [wall.plan for (folder, _), wall in self._walls.items() if folder == cwd]
        laid = {place for plan in plans for place, _ in (*plan.links, *plan.caches)}
        laid.update(*((*plan.writable, *plan.readable, *plan.read_only) for plan in plans))
        homes, places = self._planner.homes(), self._planner.places()
        hidden = HiddenPlaces(self.home, homes, places, lambda path: self.shows(cwd, path), laid)
        view = self.view(cwd)
        failed = set(paths_in("", errors, view))
        named = dict[Path, str]()
        for path in paths_in(command, errors, view):
            with suppress(OSError):
                folder = hidden.folder_to_name(path, cwd, has_failed=path in failed)
                if folder is not None and (is_error or folder not in self._hinted):
                    self._hinted.add(folder)
                    if named.keys().isdisjoint((folder, *folder.parents)):
                        named[folder] = hidden.hint(folder)
        return list(dict.fromkeys(named.values()))[:_MOST_HINTS]

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
            if mount.kind == "hidden" and is_inside(path, wall.plan)
        ]
        entry = git_entry(cwd)
        is_within = entry is None or any(map(entry.is_relative_to, self._planner.folders(cwd)))
        top = "" if entry is None or is_within else os.fspath(entry.parent)
        return WallView(os.fspath(self.home), hidden, stand_in, top)

    async def close_walls(
        self, settle: Callable[[HeldFiles], Awaitable[None]] | None = None
    ) -> None:
        """End everything inside, and its ``/tmp``; `settle` decides on what commands left."""
        walls, self._walls = self._walls, {}
        for wall in walls.values():
            await wall.end()
        watches, self._watches = self._watches, {}
        for watch in watches.values():
            if settle is not None:
                await settle(watch)
            await watch.close()
        await asyncio.to_thread(self._stand_ins.remove)

    def _try_backends(self, cwd: Path) -> SandboxState:
        """Try each kind of wall with a minimal plan."""
        if why := self._planner.why_useless(cwd):
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
            return self._try_plan(plan, self._planner.own_in(folders))

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
