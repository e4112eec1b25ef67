"""The process of an MCP server: its command, environment and secrets, and how it ended."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_tui.config.addresses import address_problem
from agent_tui.errors import ToolError
from agent_tui.providers.log_file import ProcessLog
from agent_tui.tools.mcp.oauth import token_file
from agent_tui.tools.mcp.spec import ServerSpec, expand_variables
from agent_tui.tools.processes.keeper import ProcessKeeper, TalkingChild

_MIN_SECRET_CHARS = 8
_END_WITHIN_S = 1.0
_BRIDGE = ("-P", "-m", "agent_tui.tools.mcp.http_bridge")


@dataclass(frozen=True, slots=True)
class ServerContext:
    """What servers are started with.

    Args:
        keeper: Starts their processes, and ends them however the program ends.
        environ: Their environment, without secrets.
        whole_environ: Holds the values of variables named in the settings.
        refused: Variables that no server may receive: the model providers' keys.
        secrets: Their values, which no log may contain.
        log_path: Receives what they write to stderr.
        cwd: Where they are started, unless they specify it.
        tokens: The folder with the login tokens.
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
class ServerProcess:
    """The running process of a server, or of the bridge to it.

    Attributes:
        child: The process.
        log: What it writes to stderr.
        secrets: Texts kept out of its log and notices: our keys, and the values it received.
    """

    child: TalkingChild
    log: ProcessLog
    secrets: tuple[str, ...]

    async def ending(self) -> tuple[str, str]:
        """How it ended, after a short wait, and the last line of its log."""
        await asyncio.wait((self.child.ending,), timeout=_END_WITHIN_S)
        await self.log.finish()
        lines = [line for line in self.log.text.splitlines() if line.strip()]
        return _how_it_ended(self.child), lines[-1] if lines else ""


@asynccontextmanager
async def running_process(
    spec: ServerSpec, around: ServerContext
) -> AsyncGenerator[ServerProcess, None]:
    """Start the server of `spec`, or the bridge to its address; stop it when the block ends.

    Raises:
        ToolError: A variable that it names is not set, or may not be given to it.
        OSError: It cannot be started.
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
    secrets = (*around.secrets, *own)
    cwd = spec.cwd or around.cwd
    async with around.keeper.talking_child(argv, cwd=cwd, environ=environ) as child:
        log = ProcessLog(child.stderr, around.log_path, secrets)
        try:
            yield ServerProcess(child, log, secrets)
        finally:
            await log.finish()


def bridge_environ(url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The environment that tells the bridge its server; arguments would be visible to all users."""
    variables = {"AGENT_TUI_MCP_URL": url}
    for number, (name, value) in enumerate(headers.items()):
        variables[f"AGENT_TUI_MCP_HEADER_{number}"] = f"{name}: {value}"
    return variables


def _may_be_secret(value: str) -> bool:
    """Whether to mask a value in the log; masking short ones would garble it."""
    return len(value) >= _MIN_SECRET_CHARS


def _how_it_ended(child: TalkingChild) -> str:
    code = child.ending.result() if child.ending.done() else None
    if code is None:
        return "it closed its output"
    if code >= 0:
        return f"it exited with code {code}"
    try:
        return f"it was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was killed by signal {-code}"
