"""The MCP servers that an editor names for a session."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TypeAlias

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from agent_tui.agent.server_files import shown_whole
from agent_tui.tools.mcp.spec import ServerSpec, name_problem

GivenServer: TypeAlias = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

_SOURCE = "the editor"
_MOST_NAME_CHARS = 24


def speaks_http() -> bool:
    """Whether the package for servers at an address is installed."""
    return find_spec("mcp") is not None


def servers_of_editor(
    given: Sequence[GivenServer] | None,
) -> tuple[tuple[ServerSpec, ...], tuple[str, ...]]:
    """What may be started if the person says so, and why the rest cannot be."""
    specs: list[ServerSpec] = []
    problems: list[str] = []
    for server in given or ():
        try:
            specs.append(_spec(server))
        except ValueError as error:
            problems.append(f"The editor's MCP server {server.name[:40]!r} was ignored: {error}.")
    return tuple(specs), tuple(problems)


def _spec(given: GivenServer) -> ServerSpec:
    name = re.sub(r"[^A-Za-z0-9]+", "-", given.name)[:_MOST_NAME_CHARS].strip("-")
    if why := name_problem(name):
        raise ValueError(why)
    match given:
        case McpServerStdio(command=command, args=args, env=env):
            variables = {each.name: each.value for each in env}
            spec = ServerSpec(name, _SOURCE, argv=(command, *args), env=variables, origin="editor")
        case HttpMcpServer(url=url, headers=headers):
            named = {each.name: each.value for each in headers}
            spec = ServerSpec(name, _SOURCE, url=url, headers=named, origin="editor")
        case _:
            raise ValueError(f"its type is {given.type}; only stdio and http are supported")
    return shown_whole(spec)
