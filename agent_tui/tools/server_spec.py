"""A server whose tools the model may call: what is started, and how it is shown."""

import hashlib
import json
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal

from agent_tui.config.addresses import check_address

_MAX_SHOWN_CHARS = 4_000
"""Longest command: the user is shown all of it, and nobody reads more."""

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


def check_showable(spec: ServerSpec) -> ServerSpec:
    """Returns `spec` if all of what it starts can be shown to the user.

    Raises:
        ValueError: It is too long, or its address is invalid.
    """
    if spec.url and "${" not in spec.url:
        check_address(spec.url)
    if sum(map(len, (spec.command_line, *spec.extras))) > _MAX_SHOWN_CHARS:
        raise ValueError(f"its command is longer than {_MAX_SHOWN_CHARS:,} characters")
    return spec
