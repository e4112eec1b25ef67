"""Plans the walls of a conversation: what of the machine each shows, given what is there now."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.features.sandbox.backends import keep_pythons, link_home, make_cache_folders
from agent_tui.features.sandbox.folders import GATES_BEGIN, StandIns, write_versions
from agent_tui.features.sandbox.home import (
    HomeView,
    find_hidden,
    furnish,
    home_of_account,
    make_links,
    own_program,
    program_folders,
    what_runs,
)
from agent_tui.features.sandbox.mounts import close_ways
from agent_tui.features.sandbox.named_sockets import find_sockets_of_others
from agent_tui.features.sandbox.places import find_data_places, find_places
from agent_tui.features.sandbox.plan import (
    Border,
    Covers,
    SandboxPlan,
    WallFolders,
    plan_for,
)
from agent_tui.features.sandbox.tool_settings import (
    find_keys_among,
    plain_git_settings,
    tool_settings,
)
from agent_tui.features.sandbox.watch import ObeyedWatch
from agent_tui.paths import make_private_dir
from agent_tui.safe_paths import is_file, is_folder, path_exists, real_path
from agent_tui.tools.base import TEMPORARY_PLACES
from agent_tui.tools.command_sandbox import setup_error
from agent_tui.tools.files.folder_entries import REBUILT_FOLDERS
from agent_tui.tools.git.places import git_folder_around, git_place
from agent_tui.tools.processes.keeper import ProcessKeeper


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
        return (*(f"{real_path(folder)}/" for folder in written), GATES_BEGIN, "/dev/shm/")


class WallPlanner:
    """Plans walls from what is around the working folders, and what the watch covers in them.

    Args:
        around: What is around the working folders.
        keeper: Starts git, outside.
        stand_ins: The folders that replace others.
        watch: The watch on what commands in a folder leave.
        is_coarse: Whether the wall for a folder can protect nothing in working folders.
    """

    def __init__(
        self,
        around: Surroundings,
        keeper: ProcessKeeper,
        stand_ins: StandIns,
        watch: Callable[[Path], ObeyedWatch | None],
        is_coarse: Callable[[Path], bool],
    ) -> None:
        self._around = around
        self._outside = keeper
        self._stand_ins = stand_ins
        self._watch = watch
        self._is_coarse = is_coarse
        self._hidden: tuple[Path, ...] | None = None
        self._shown: dict[Path, tuple[Path, ...]] = {}
        self._real: dict[Path, tuple[Path, ...]] = {}

    def plan_new(self, cwd: Path, *, is_read_only: bool) -> SandboxPlan:
        """The plan of a new wall, with its home stand-in prepared. Blocking."""
        folders = self.folders(cwd)
        for folder in folders:
            if real_path(folder) != folder:
                raise setup_error(f"{folder} was replaced by a link")
            if not is_folder(folder):
                raise ToolError(f"{folder} is no longer there. Nothing was run.")
        workspace = folders[0]
        view = self._view(folders)
        for path in (self._around.home, cwd, *self._around.added):
            view.add(path)
        for path, folder in self._around.caches:
            if folder == path:
                view.add(path)
            else:
                make_private_dir(folder).chmod(0o700)  # which a command may have changed
        own = self._stand_ins.of_wall()
        home = real_path(self._around.home)
        settings = tool_settings(self._around.home, workspace, self._around.environ, self._outside)
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
        keys = (path for path in among if is_file(path) and not is_inside(path, plan))
        hidden = (*plan.hidden, *beside, *self._lead_to(keys, view.readable))
        hidden = tuple(dict.fromkeys(hidden))
        plan = replace(plan, hidden=hidden, beside=beside, links=links)
        plan = self._with_versions(cwd, plan)
        if self._is_coarse(cwd):
            kept = None if is_read_only else self._stand_ins.kept_home(workspace)
            plan = plan if kept is None else keep_pythons(plan, kept.pythons)
            link_home(plan)
            if kept is not None:
                plan = replace(plan, home_stand_in=real_path(kept.move_in(plan.home_stand_in)))
        else:
            make_cache_folders(plan)
        close_ways(plan)
        return plan

    def plan_again(self, cwd: Path, before: SandboxPlan, pid: int) -> SandboxPlan:
        """The current plan of a running wall, as far as it can still change.

        Args:
            cwd: The folder that it is for.
            before: The plan that it was set up with.
            pid: A process inside, by its id outside.
        """
        covers = self._covers(cwd)
        kept = [path for path in before.hidden if not is_inside(path, before)]
        outside = [path for path in kept if path not in before.beside]
        watch = self._watch(cwd)
        beside = () if watch is None else self._find_beside(cwd, watch)
        seen = (*covers.sockets, *(() if watch is None else watch.hidden.sockets_beside))
        # They come and go, so no new wall's plan has them.
        sockets = find_sockets_of_others(seen, before.gate, pid, self._outside)
        plan = plan_for(
            self.folders(cwd),
            Border(self._around.home, self._around.caches),
            WallFolders(before.home_stand_in, before.scratch, before.gate),
            replace(covers, hidden=(*outside, *covers.hidden, *sockets, *beside)),
            readable=before.readable,
            is_read_only=before.is_read_only,
        )
        return self._with_versions(cwd, plan)

    def find_shown(self, cwd: Path) -> tuple[Path, ...]:
        """What of hidden places commands in `cwd` see. Blocking on first use."""
        if cwd not in self._shown:
            folders = self.folders(cwd)
            nowhere = WallFolders(self._around.home, self._around.home, self._around.home)
            runs = self._runs(self._view(folders))
            plan = plan_for(folders, self._border_of(folders), nowhere, readable=runs)
            self._shown[cwd] = (*plan.writable, *plan.readable)
        return self._shown[cwd]

    def _view(self, folders: Sequence[Path]) -> HomeView:
        runtime = Path("/run/user", str(os.getuid()))  # where fnm has its links to versions
        places = (*self.places(), *TEMPORARY_PLACES, runtime)
        return what_runs(self.homes(), places, folders, self._around.environ)

    def _keys_beside(self, cwd: Path, plan: SandboxPlan, view: HomeView) -> tuple[Path, ...]:
        """The files with keys in folders that are shown for a program or a repository in them.

        If files in working folders cannot be hidden, then neither in the repository around them.
        """
        if (watch := self._watch(cwd)) is None:
            return ()
        folders = [
            path
            for path in plan.readable
            if not any(path.is_relative_to(managed) for managed in view.managed)
            and not any(path.is_relative_to(folder) for folder in plan.writable)
            and path.name not in REBUILT_FOLDERS
            and (not self._is_coarse(cwd) if _is_around(path, plan) else view.holds(path))
        ]
        watch.hidden.search_beside(folders, plan.writable)
        return self._find_beside(cwd, watch)

    def _find_beside(self, cwd: Path, watch: ObeyedWatch) -> tuple[Path, ...]:
        keys = watch.hidden.find_beside()
        return tuple(self._lead_to(keys, (*watch.hidden.beside, *self._projects(cwd))))

    def _projects(self, cwd: Path) -> Iterator[Path]:
        """The working folders, and the work trees around them."""
        for folder in self.folders(cwd):
            yield folder
            if (git := git_place(folder)) is not None:
                yield git.top

    def _lead_to(self, keys: Iterable[Path], places: Iterable[Path]) -> Iterator[Path]:
        """What `keys` are or lead to. Blocking.

        A link with the name of a key may lead to anything, and a command may have made it. Commands
        need the system, devices, the programs on ``PATH`` and what git keeps. So a link counts only
        if it leads to a file in `places` that is none of these.
        """
        programs = set(map(real_path, program_folders(self._around.environ)))
        ours, places = real_path(sys.prefix), tuple(places)
        for path in keys:
            real = real_path(path)
            is_needed = real.parent in programs or real.is_relative_to(ours)
            is_there = is_file(real) and any(map(real.is_relative_to, places))
            is_keys = is_there and not is_needed and git_folder_around(real) is None
            if path_exists(real) and (real == path or is_keys):
                yield real

    def _with_versions(self, cwd: Path, plan: SandboxPlan) -> SandboxPlan:
        """`plan`, in which git's versions of hidden files and its settings without tokens show."""
        watch = self._watch(cwd)
        settings = plain_git_settings(plan.read_only)
        versions = {**settings, **({} if watch is None else watch.hidden.versions)}
        hidden = tuple(dict.fromkeys((*plan.hidden, *settings)))
        return replace(plan, hidden=hidden, versions=write_versions(versions, plan.gate))

    def _covers(self, cwd: Path) -> Covers:
        """What is covered in working folders, given this program's environment and files."""
        watch = self._watch(cwd)
        covers = Covers() if watch is None else watch.covers
        covers = replace(covers, hidden=tuple(self._lead_to(covers.hidden, self._projects(cwd))))
        if own := self.own_in(self.folders(cwd)):
            for folder in own:  # a command could create one that is missing
                make_private_dir(folder)
            covers = replace(covers, hidden=(*covers.hidden, *own))
        ours = real_path(sys.prefix)
        if sys.prefix == sys.base_prefix or not any(f in ours.parents for f in self.folders(cwd)):
            return covers
        return replace(covers, read_only=(*covers.read_only, ours))

    def _own_folders(self) -> Iterator[Path]:
        return (real_path(folder) for folder in self._around.own_folders)

    def own_in(self, folders: Iterable[Path]) -> tuple[Path, ...]:
        """This program's own folders in working `folders` and in the user's caches."""
        caches = (place for place, folder in self._around.caches if place == folder)
        working = [real_path(folder) for folder in (*folders, *caches)]
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
            own, homes = self._around.own_folders, self.homes()
            others = (home for home in homes if home != real_path(self._around.home))
            self._hidden = (*own, *find_hidden(self._around.environ, homes), *others)
        hidden = (
            place
            for place in (*self._hidden, *self.places())
            if not any(folder in place.parents for folder in folders)
        )
        return Border(self._around.home, self._around.caches, tuple(hidden))

    def folders(self, cwd: Path) -> tuple[Path, ...]:
        """The working folders, with links resolved as before any command ran."""
        if cwd not in self._real:
            self._real[cwd] = tuple(real_path(each) for each in (cwd, *self._around.added))
        return self._real[cwd]

    def places(self) -> tuple[Path, ...]:
        """The hidden places besides homes and temporary folders, without links."""
        around = self._around
        caches = (place for place, _ in around.caches)
        return find_places(self.homes(), around.hidden_places, around.environ, caches)

    def homes(self) -> tuple[Path, ...]:
        """The home folders, without links: the user's, and what the system says it is."""
        account = home_of_account()
        homes = dict.fromkeys(filter(None, (real_path(self._around.home), account)))
        return tuple(home for home in homes if home.name)

    def why_useless(self, cwd: Path) -> str:
        """Why a wall for `cwd` would protect nothing; empty if it protects something."""
        for folder in (cwd, *self._around.added):
            if any(home.is_relative_to(real_path(folder)) for home in self.homes()):
                return f"{folder} contains the home folder, so a sandbox would protect nothing"
            if any(real_path(folder).is_relative_to(own) for own in self._own_folders()):
                return f"{folder} belongs to agent-tui, so a sandbox would protect nothing"
        return ""


def is_inside(path: Path, plan: SandboxPlan) -> bool:
    """Whether `path` lies in what commands write."""
    return any(root in path.parents for root in plan.writable)


def _is_around(path: Path, plan: SandboxPlan) -> bool:
    return any(folder.is_relative_to(path) for folder in plan.writable)
