"""Builds the sandbox of the model's commands."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_tui import paths
from agent_tui.cli.command_sandbox import SandboxHost
from agent_tui.cli.settings import session_root
from agent_tui.features.sandbox import gate_process
from agent_tui.features.sandbox.approved_state import APPROVED, describe_asked
from agent_tui.features.sandbox.held import describe_waiting
from agent_tui.features.sandbox.kept_home import HOMES
from agent_tui.features.sandbox.proxy import NetworkGate
from agent_tui.features.sandbox.running_commands import conversations_beside, find_killed
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.features.sandbox.settings import SandboxSettings
from agent_tui.features.sandbox.wall import WallParts
from agent_tui.features.sandbox.wall_planner import Surroundings
from agent_tui.features.sandbox.watch import HELD, ObeyedWatch
from agent_tui.safe_paths import real_path
from agent_tui.tools.files.home_links import linked_settings
from agent_tui.tools.git.places import git_place
from agent_tui.tools.processes.keeper import ProcessKeeper


def build_sandbox(host: SandboxHost) -> Sandbox:
    """The sandbox of the model's commands; it has tried nothing yet.

    Raises:
        UsageError: The folder of sessions is not possible.
    """
    settings, environ, keeper = host.settings, host.environ, host.keeper
    chosen = settings.of(SandboxSettings)
    own = (paths.user_config_dir(), paths.user_data_dir(), paths.log_file().parent)
    around = Surroundings(
        home=Path.home(),
        own_folders=(*own, session_root(settings), *paths.cache_folders()),
        scratch_parent=paths.cache_folder("sandbox"),
        environ=environ,
        added=host.added,
        caches=tuple(_caches(chosen, Path.home())),
    )

    def watch(folders: Sequence[Path], has_mounts: bool) -> ObeyedWatch:
        folder = _watch_folder(folders[0])
        git = keeper or ProcessKeeper()
        return ObeyedWatch(
            folders,
            folder,
            keeper=git,
            environ=environ,
            has_mounts=has_mounts,
            linked=linked_settings(folders, environ)(),
            repositories=_repositories_folder(),
            unchecked=around.unchecked(),
        )

    gate = NetworkGate(may_be_private=settings.fetch_private)
    parts = WallParts(
        watch=watch,
        gate=gate,
        gate_program=Path(gate_process.__file__),
        was_killed=was_killed_in,
        killed_near=_killed_near,
        waiting=_describe_waiting,
    )
    return Sandbox(
        chosen.sandbox, around, parts, keeper=keeper, most_processes=settings.max_processes
    )


def _caches(settings: SandboxSettings, home: Path) -> Iterator[tuple[Path, Path]]:
    """The caches of package managers, and the folder that commands have for each.

    Programs that run outside are hard-linked to the user's own caches. So commands have separate
    ones, but for those that the user names.
    """
    are_users = "sandbox_caches" in settings.model_fields_set
    for name in settings.sandbox_caches:
        yield home / name, home / name if are_users else caches_folder() / name


def caches_folder() -> Path:
    """The folder of the caches that commands in the sandbox have."""
    return paths.cache_folder("packages")


def homes_folder() -> Path:
    """The folder of the stand-ins for the home folder that keep their paths."""
    return paths.cache_folder("sandbox") / HOMES


def was_killed_in(cwd: Path) -> bool:
    """Whether a program may have been killed while its commands ran in `cwd`."""
    return any(_watch_folder(cwd).glob("running/*"))


def _killed_near(cwd: Path) -> Iterator[Path]:
    """See `WallParts`."""
    place = git_place(cwd)
    roots = (cwd,) if place is None else (cwd, place.folder)
    return find_killed(conversations_beside(_repositories_folder()), roots)


def _describe_waiting(cwd: Path) -> str:
    """See `WallParts`."""
    folder = _watch_folder(cwd)
    notices = describe_waiting(folder / HELD), describe_asked(folder / APPROVED)
    return " ".join(filter(None, notices))


def _repositories_folder() -> Path:
    return paths.user_data_dir() / "repositories"


def _watch_folder(cwd: Path) -> Path:
    return paths.project_dir(real_path(cwd)) / "sandbox"
