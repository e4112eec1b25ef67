"""Where MCP servers are named, and how the settings and variables make a server of it."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from agent_tui.errors import ToolError
from agent_tui.features.mcp.settings import McpServerSettings
from agent_tui.tools.server_spec import ServerSpec, ToolPicks


def spec_from_settings(name: str, settings: McpServerSettings, source: str) -> ServerSpec:
    """The server that the user's own settings name."""
    spec = ServerSpec(
        name=name,
        source=source,
        argv=(settings.command, *settings.args) if settings.command.strip() else (),
        env=settings.env,
        url=settings.url,
        headers={header: f"${{{name}}}" for header, name in settings.headers_env.items()},
    )
    return as_wanted(spec, settings)


def as_wanted(spec: ServerSpec, settings: McpServerSettings) -> ServerSpec:
    """`spec` with the user's settings for it, whoever names it."""
    return replace(
        spec,
        is_enabled=spec.is_enabled and settings.enabled,
        timeout_s=settings.timeout_s,
        picks=ToolPicks(settings.tools, settings.exclude, settings.always),
    )


_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


def expand_variables(text: str, environ: Mapping[str, str], refused: Collection[str]) -> str:
    """`text` with the values of the variables it names.

    Args:
        text: As in a file.
        environ: Holds the values.
        refused: Variables that no server receives: the model providers' keys.

    Raises:
        ToolError: A variable is not set, or no server may have it.
    """

    def value(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        if name in refused:
            raise ToolError(f"${name} contains a model's key, which is never given to a server.")
        if name in environ:
            return environ[name]
        if otherwise is None:
            raise ToolError(f"${name} is not set. Export it before you start agent-tui.")
        return otherwise

    return _VARIABLE.sub(value, text)


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server that a file names; `is_allowed` is None if the user was not asked yet."""

    spec: ServerSpec
    is_allowed: bool | None = True


@dataclass(frozen=True, slots=True)
class FoundServers:
    """The servers for a folder, and the problems with the files that name them."""

    servers: tuple[FoundServer, ...] = ()
    problems: tuple[str, ...] = ()


class ServerSources(Protocol):
    """Where servers are named (implemented by `server_files`)."""

    def find(self, cwd: Path) -> FoundServers:
        """The servers for work in `cwd`. Reads files; nothing in an untrusted folder."""
        ...

    def answer(self, spec: ServerSpec, *, is_allowed: bool) -> None:
        """Store the user's decision about a project's server.

        Raises:
            ConfigError: It cannot be stored; it applies to this run.
        """
        ...
