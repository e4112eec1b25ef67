"""What an MCP server is started with: its command, its environment, and what in it is secret."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_tui.config.addresses import address_problem
from agent_tui.errors import ToolError
from agent_tui.tools.mcp.oauth import token_file
from agent_tui.tools.mcp.spec import ServerSpec, expand_variables
from agent_tui.tools.processes.keeper import ProcessKeeper

_MIN_SECRET_CHARS = 8
_BRIDGE = ("-P", "-m", "agent_tui.tools.mcp.http_bridge")


@dataclass(frozen=True, slots=True)
class ServerContext:
    """What servers are started with.

    Args:
        keeper: Starts their processes, and ends them however we end.
        environ: Their environment, without secrets.
        whole_environ: Where variables named in the settings are looked up.
        refused: Variables no server may be given: the keys for the model.
        secrets: Their values, which no log may hold.
        log_path: Takes what they write to stderr.
        cwd: Where they are started, unless they say it themselves.
        tokens: The folder of what logging in gave.
    """

    keeper: ProcessKeeper
    environ: Mapping[str, str]
    whole_environ: Mapping[str, str]
    refused: frozenset[str]
    secrets: tuple[str, ...]
    log_path: Path
    cwd: Path
    tokens: Path


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The words and the environment of a server's process.

    `secrets` is what its log may not hold: all of `ServerContext.secrets`, and its own.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    secrets: tuple[str, ...]


def server_command(spec: ServerSpec, around: ServerContext) -> ServerCommand:
    """What starts the server of `spec`, or the bridge to it where it is at an address.

    Raises:
        ToolError: A variable that it names is not set, or may not be given to it.
    """

    def filled(text: str) -> str:
        return expand_variables(text, around.whole_environ, around.refused)

    env = {name: filled(value) for name, value in spec.env.items()}
    environ = {**around.environ, **env}
    argv = tuple(filled(word) for word in spec.argv)
    headers: dict[str, str] = {}
    if spec.url:
        headers = {name: filled(value) for name, value in spec.headers.items()}
        argv = (sys.executable, *_BRIDGE)
        url = filled(spec.url)
        if problem := address_problem(url):
            raise ToolError(f"The address of the MCP server {spec.name} {problem}.")
        environ |= bridge_environ(url, headers)
        if (tokens := token_file(around.tokens, spec.name, url)).exists():
            environ["AGENT_TUI_MCP_TOKENS"] = str(tokens)
    own = filter(_may_be_secret, (*env.values(), *headers.values()))
    return ServerCommand(argv, environ, (*around.secrets, *own))


def bridge_environ(url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """How the bridge to a server at `url` is told of it: not by arguments, which all can see."""
    variables = {"AGENT_TUI_MCP_URL": url}
    for number, (name, value) in enumerate(headers.items()):
        variables[f"AGENT_TUI_MCP_HEADER_{number}"] = f"{name}: {value}"
    return variables


def _may_be_secret(value: str) -> bool:
    """Whether a value is taken out of the log; short ones would take half of it along."""
    return len(value) >= _MIN_SECRET_CHARS
