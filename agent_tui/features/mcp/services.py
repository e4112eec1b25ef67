"""Builds the MCP servers of a run from the settings, an editor's list and a project's files."""

from collections.abc import Sequence
from pathlib import Path

from agent_tui import paths
from agent_tui.agent.consent import ConsentFile
from agent_tui.cli.settings import user_config_path
from agent_tui.cli.tool_servers import ServersHost
from agent_tui.config import Settings
from agent_tui.features.mcp.hub import McpHub
from agent_tui.features.mcp.server import ServerContext
from agent_tui.features.mcp.server_files import ServerFiles
from agent_tui.features.mcp.settings import McpSection
from agent_tui.permissions.trust import FolderTrust
from agent_tui.providers.keys import key_values
from agent_tui.tools.processes.environment import model_environ
from agent_tui.tools.server_spec import ServerSpec


def make_servers(host: ServersHost) -> McpHub:
    """The MCP servers of a run; nothing is read or started yet."""
    settings, environ, own_keys = host.settings, host.environ, host.own_keys
    return McpHub(
        server_files(settings, host.trust, host.of_editor),
        ServerContext(
            keeper=host.keeper,
            environ=model_environ(
                environ, own_keys=own_keys, passed=settings.permissions.pass_environment
            ),
            whole_environ=environ,
            refused=frozenset(own_keys),
            secrets=key_values(environ, own_keys),
            log_path=paths.log_file(),
            cwd=host.cwd,
            tokens=tokens_folder(),
        ),
        wait_s=settings.of(McpSection).mcp.wait_s,
    )


def tokens_folder() -> Path:
    """The folder for the tokens of MCP servers."""
    return paths.user_data_dir() / "mcp-tokens"


def server_files(
    settings: Settings, trust: FolderTrust, of_editor: Sequence[ServerSpec] = ()
) -> ServerFiles:
    """The sources of MCP servers, and the user's decisions about those that are not their own."""
    return ServerFiles(
        settings.of(McpSection).mcp.servers,
        user_config_path(),
        trust,
        ConsentFile(paths.user_data_dir() / "mcp-servers.json"),
        of_editor,
    )
