"""How an MCP server is started, and how it is identified."""

import hashlib
import json
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal, Protocol

from agent_tui.config import McpServerSettings
from agent_tui.errors import ToolError

_MAX_SERVER_NAME_CHARS = 24
"""A tool's name contains the server's; providers accept 64 characters for both."""

_NAME = re.compile(r"[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class ToolPicks:
    """Which tools of a server are offered, by the server's names; patterns may hold ``*``.

    Args:
        tools: The offered ones; empty for all.
        exclude: Those among them that are not offered.
        always: Those that come first if not all tools fit the context.
    """

    tools: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    always: tuple[str, ...] = ()

    def is_offered(self, own_name: str) -> bool:
        """Whether the tool is offered at all."""
        is_named = not self.tools or _fits_any(own_name, self.tools)
        return is_named and not _fits_any(own_name, self.exclude)

    def is_always(self, own_name: str) -> bool:
        """Whether the tool comes before others."""
        return _fits_any(own_name, self.always)


def _fits_any(own_name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(own_name, pattern) for pattern in patterns)


ALL_TOOLS: Final = ToolPicks()


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One server as configured.

    Args:
        name: Its name, also part of its tools' names.
        source: The file, or the editor, that names it.
        argv: Program and arguments; empty for one at an address.
        env: Added to the environment of the program.
        url: Its address; empty for a program.
        headers: HTTP headers by name; values may name variables as ``${NAME}``.
        cwd: Where the program is started; None is the workspace.
        origin: Who names it; unless it is the user, they must consent first.
        is_enabled: Whether it is started at all.
        timeout_s: For its start and for each call, in seconds.
        picks: Which of its tools are offered.
    """

    name: str
    source: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: Path | None = None
    origin: Literal["person", "project", "editor"] = "person"
    is_enabled: bool = True
    timeout_s: float = 60.0
    picks: ToolPicks = ALL_TOOLS

    @property
    def is_asked_about(self) -> bool:
        """Whether the user must agree before it is started."""
        return self.origin != "person"

    @property
    def command_line(self) -> str:
        """What is started or connected to, as shown to the user."""
        return self.url or shlex.join(self.argv)

    @property
    def extras(self) -> tuple[str, ...]:
        """The variables and headers given besides the command line, as configured, one per line."""
        env = (f"{name}={value}" for name, value in sorted(self.env.items()))
        headers = (f"{name}: {value}" for name, value in sorted(self.headers.items()))
        return (*env, *headers)

    @property
    def fingerprint(self) -> str:
        """A hash of everything that determines what is started, and of the file that names it."""
        what = [self.name, self.source, self.argv, sorted(self.env.items()), self.url]
        text = json.dumps([*what, sorted(self.headers.items()), str(self.cwd or "")])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def name_problem(name: str) -> str:
    """Why a server cannot be called `name`; empty if it can."""
    if _NAME.fullmatch(name) and len(name) <= _MAX_SERVER_NAME_CHARS:
        return ""
    return (
        f"a server's name is at most {_MAX_SERVER_NAME_CHARS} letters and digits, "
        "with single - or _ between them"
    )


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
    """Where servers are named (implemented by `agent.server_files`)."""

    def find(self, cwd: Path) -> FoundServers:
        """The servers for work in `cwd`. Reads files; nothing in an untrusted folder."""
        ...

    def answer(self, spec: ServerSpec, *, is_allowed: bool) -> None:
        """Store the user's decision about a project's server.

        Raises:
            ConfigError: It cannot be stored; it applies to this run.
        """
        ...
