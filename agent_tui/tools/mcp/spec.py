"""What an MCP server is started from, and what it is remembered by."""

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
"""A tool's name holds the server's; providers take 64 characters for both."""

_NAME = re.compile(r"[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class ToolPicks:
    """Which tools of a server are offered, by its own names for them; patterns may hold ``*``.

    Args:
        tools: Those that are; empty for all.
        exclude: Those of them that are not.
        always: Those that come first where not all tools fit the context.
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
    """One server as it was written down.

    Args:
        name: What it is called, also in the names of its tools.
        source: The file, or the editor, that names it.
        argv: Program and arguments; empty for one at an address.
        env: Added to the environment of the program.
        url: Its address; empty for a program.
        headers: HTTP headers by name; values may name variables as ``${NAME}``.
        cwd: Where the program is started; None is the workspace.
        origin: Who names it; where that is not the person, they are asked first.
        is_enabled: Whether it is started at all.
        timeout_s: For its start and for each call.
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
        """Whether the person says first that it may be started."""
        return self.origin != "person"

    @property
    def command_line(self) -> str:
        """What is started or spoken with, as the person is shown it."""
        return self.url or shlex.join(self.argv)

    @property
    def extras(self) -> tuple[str, ...]:
        """What is given beside the command line, as it was written, one a line."""
        env = (f"{name}={value}" for name, value in sorted(self.env.items()))
        headers = (f"{name}: {value}" for name, value in sorted(self.headers.items()))
        return (*env, *headers)

    @property
    def fingerprint(self) -> str:
        """A hash of all that says what would be started, and by which file."""
        what = [self.name, self.source, self.argv, sorted(self.env.items()), self.url]
        text = json.dumps([*what, sorted(self.headers.items()), str(self.cwd or "")])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def name_problem(name: str) -> str:
    """Why a server cannot be called `name`; empty where it can."""
    if _NAME.fullmatch(name) and len(name) <= _MAX_SERVER_NAME_CHARS:
        return ""
    return (
        f"a server's name is at most {_MAX_SERVER_NAME_CHARS} letters and digits, "
        "with single - or _ between them"
    )


def spec_from_settings(name: str, settings: McpServerSettings, source: str) -> ServerSpec:
    """The server that the person's own settings name."""
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
    """`spec` with what the person's settings want of it, whoever names it."""
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
        text: As it stands in a file.
        environ: Where the values are.
        refused: Variables that no server is given: the keys for the model.

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
