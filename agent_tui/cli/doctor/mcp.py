"""The MCP servers of the person's settings; none is started."""

from collections.abc import Iterator
from importlib.util import find_spec

from agent_tui.cli.doctor.check import Check
from agent_tui.cli.doctor.programs import find_program
from agent_tui.cli.doctor.surroundings import Surroundings
from agent_tui.config import McpServerSettings
from agent_tui.tools.mcp.spec import name_problem

_SECTION = "mcp"
_SDK = "mcp"


def check_servers(around: Surroundings) -> Iterator[Check]:
    """Whether each server could be started; ``/mcp`` shows whether it was."""
    servers = around.loaded.settings.mcp.servers
    if not servers:
        yield Check(_SECTION, "servers", "info", "none in the settings: [mcp.servers.NAME]")
    for name, server in servers.items():
        if why := name_problem(name):
            advice = "Call it otherwise in config.toml."
            yield Check(_SECTION, name[:40], "warning", f"left out: {why}", advice)
        elif not server.enabled:
            yield Check(_SECTION, name, "info", "switched off in the settings")
        else:
            yield _at_address(name, server) if server.url else _program(around, name, server)


def _program(around: Surroundings, name: str, server: McpServerSettings) -> Check:
    path = find_program(server.command, around.environ)
    if path is None:
        found = f"{server.command} is not found on PATH"
        return Check(_SECTION, name, "warning", found, "Install it, or name its whole path.")
    return Check(_SECTION, name, "ok", path)


def _at_address(name: str, server: McpServerSettings) -> Check:
    if find_spec(_SDK) is None:
        found = f"{server.url} needs the package mcp"
        advice = "python -m pip install 'agent-tui[mcp]'"
        return Check(_SECTION, name, "warning", found, advice)
    return Check(_SECTION, name, "ok", server.url)
