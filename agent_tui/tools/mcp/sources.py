"""Where MCP servers are named, and how one is shown."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_tui.tools.mcp.server import ServerState
from agent_tui.tools.mcp.spec import ServerSpec


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server that some file names; `is_allowed` is None where the person was not asked yet."""

    spec: ServerSpec
    is_allowed: bool | None = True


@dataclass(frozen=True, slots=True)
class FoundServers:
    """The servers for a folder, and what of the files that name them cannot be used."""

    servers: tuple[FoundServer, ...] = ()
    problems: tuple[str, ...] = ()


class ServerSources(Protocol):
    """Where servers are named (`agent.server_files` does it)."""

    def find(self, cwd: Path) -> FoundServers:
        """The servers for work in `cwd`. Reads files; nothing of a folder without trust."""
        ...

    def answer(self, spec: ServerSpec, *, is_allowed: bool) -> None:
        """Keep what the person said about a project's server.

        Raises:
            ConfigError: It cannot be kept; it holds for this run.
        """
        ...


@dataclass(frozen=True, slots=True)
class ServerView:
    """A server as it is shown. `tools` are names the server itself gives."""

    spec: ServerSpec
    state: ServerState
    why: str
    tools: tuple[str, ...]
    notes: tuple[str, ...]
