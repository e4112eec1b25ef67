"""Builds the sandbox of the model's commands, and the MCP servers whose tools it may call."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agent_tui import paths
from agent_tui.agent.consent import ConsentFile
from agent_tui.agent.hooks.files import HookFiles, HookSpec
from agent_tui.agent.server_files import ServerFiles
from agent_tui.cli.settings import session_root, user_config_path
from agent_tui.config import Settings
from agent_tui.permissions.trust import FolderTrust
from agent_tui.providers.keys import key_values
from agent_tui.tools.files.home_links import linked_settings
from agent_tui.tools.mcp.hub import McpHub
from agent_tui.tools.mcp.server import ServerContext
from agent_tui.tools.mcp.spec import ServerSpec
from agent_tui.tools.processes.environment import model_environ
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.sandbox import gate_process
from agent_tui.tools.sandbox.proxy import NetworkGate
from agent_tui.tools.sandbox.sandbox import Sandbox, Surroundings, WallParts
from agent_tui.tools.sandbox.watch import ObeyedWatch


def command_sandbox(
    settings: Settings,
    environ: Mapping[str, str],
    added: Iterable[Path] = (),
    *,
    keeper: ProcessKeeper | None = None,
) -> Sandbox:
    """The sandbox of the model's commands; it has tried nothing yet.

    Args:
        settings: Whether it is wanted, and where the sessions are.
        environ: Where bubblewrap is searched for.
        added: Other working folders.
        keeper: Starts git and the sandbox itself, outside; None for a separate one.

    Raises:
        UsageError: The folder of sessions is not possible.
    """
    own = (paths.user_config_dir(), paths.user_data_dir(), paths.log_file().parent)
    around = Surroundings(
        home=Path.home(),
        own_folders=(*own, session_root(settings), *paths.cache_folders()),
        scratch_parent=paths.cache_folder("sandbox"),
        environ=environ,
        added=tuple(added),
        caches=tuple(_caches(settings, Path.home())),
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
            repositories=paths.user_data_dir() / "repositories",
            unchecked=around.unchecked(),
        )

    gate = NetworkGate(may_be_private=settings.fetch_private)
    parts = WallParts(watch=watch, gate=gate, gate_program=Path(gate_process.__file__))
    return Sandbox(
        settings.sandbox, around, parts, keeper=keeper, most_processes=settings.max_processes
    )


def _caches(settings: Settings, home: Path) -> Iterator[tuple[Path, Path]]:
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


def was_killed_in(cwd: Path) -> bool:
    """Whether a program may have been killed while its commands ran in `cwd`."""
    return any(_watch_folder(cwd).glob("running/*"))


def _watch_folder(cwd: Path) -> Path:
    return paths.project_dir(cwd.resolve()) / "sandbox"


def unseen_by_commands(sandbox: Sandbox, workspace: Path) -> Callable[[Path], bool]:
    """A function that tells what commands in `workspace` cannot read; saved outputs count as read.

    From now on, agent-tui runs no program that lies there.
    """
    sandbox.expect(workspace)
    outputs = paths.cache_folder("outputs").resolve()
    return lambda path: not (path.is_relative_to(outputs) or sandbox.shows(workspace, path))


def tool_servers(
    settings: Settings,
    trust: FolderTrust,
    keeper: ProcessKeeper,
    *,
    environ: Mapping[str, str],
    own_keys: Collection[str],
    cwd: Path,
    of_editor: Sequence[ServerSpec] = (),
) -> McpHub:
    """The MCP servers of a run; nothing is read or started yet.

    Args:
        settings: Name the user's own servers.
        trust: Says whether a project's file may be opened.
        keeper: Starts the servers' processes.
        environ: agent-tui's environment.
        own_keys: Variables with model providers' keys, which no server receives.
        cwd: The folder to begin in.
        of_editor: Servers that an editor names.
    """
    return McpHub(
        server_files(settings, trust, of_editor),
        ServerContext(
            keeper=keeper,
            environ=model_environ(
                environ, own_keys=own_keys, passed=settings.permissions.pass_environment
            ),
            whole_environ=environ,
            refused=frozenset(own_keys),
            secrets=key_values(environ, own_keys),
            log_path=paths.log_file(),
            cwd=cwd,
            tokens=tokens_folder(),
        ),
        wait_s=settings.mcp.wait_s,
    )


def hook_sources(
    settings: Settings, trust: FolderTrust, brought: Sequence[HookSpec] = ()
) -> HookFiles:
    """The files that name hooks, and the user's decisions about a project's hooks."""
    consent = ConsentFile(paths.user_data_dir() / "hooks.json", "hooks")
    return HookFiles(settings.hooks, user_config_path(), trust, consent, brought)


def tokens_folder() -> Path:
    """The folder for the tokens of MCP servers."""
    return paths.user_data_dir() / "mcp-tokens"


def server_files(
    settings: Settings, trust: FolderTrust, of_editor: Sequence[ServerSpec] = ()
) -> ServerFiles:
    """The sources of MCP servers, and the user's decisions about those that are not their own."""
    return ServerFiles(
        settings.mcp.servers,
        user_config_path(),
        trust,
        ConsentFile(paths.user_data_dir() / "mcp-servers.json"),
        of_editor,
    )
