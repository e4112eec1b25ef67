"""The subcommands as a table: dispatch, the list in ``--help`` and completion follow from it."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, cast

_USAGE_COLUMNS = 34


class SubcommandModule(Protocol):
    """What the module of a subcommand offers."""

    def build_parser(self) -> argparse.ArgumentParser:
        """Its command line."""
        ...

    def run_command(self, argv: Sequence[str], /) -> int:
        """Run it with the arguments after its name; returns the exit code."""
        ...


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A row of the table.

    Attributes:
        name: What is typed after ``agent-tui``.
        operands: What follows the name, as ``--help`` shows it.
        summary: What it is for, in one line.
        module: Where it is, below ``agent_tui.cli``; imported only when it is asked for.
    """

    name: str
    operands: str
    summary: str
    module: str

    def load(self) -> SubcommandModule:
        """Import the module."""
        return cast(SubcommandModule, import_module(f"agent_tui.cli.{self.module}"))


_ROWS = (
    Subcommand(
        "models",
        "list|pull|add|remove|path",
        "models at hand, and those on this machine",
        "models.command",
    ),
    Subcommand(
        "sessions",
        "list|show|export|import",
        "earlier conversations; also rename and delete",
        "sessions.command",
    ),
    Subcommand("context", "FILE", "what the model would see of a session file", "context_command"),
    Subcommand(
        "compact", "FILE", "a session file made smaller, as a session of its own", "compact.command"
    ),
    Subcommand(
        "config",
        "show|edit|set|unset|path",
        "settings in force and who says so, and changing yours",
        "config.command",
    ),
    Subcommand(
        "permissions",
        "check|list|remove",
        "what may run without a question, and the rules",
        "permissions_command",
    ),
    Subcommand(
        "trust",
        "list|add|remove",
        "folders whose AGENTS.md and settings are obeyed",
        "trust_command",
    ),
    Subcommand(
        "mcp",
        "list|add|remove|allow|refuse",
        "MCP servers, whose tools the model may call",
        "mcp_command",
    ),
    Subcommand(
        "login",
        "copilot|chatgpt|openrouter|...",
        "sign in to an account, or have a provider's key kept",
        "login.login",
    ),
    Subcommand("logout", "NAME", "forget what signing in gave, or a kept key", "login.logout"),
    Subcommand("acp", "", "the agent for an editor (Zed, JetBrains, Neovim ...)", "acp_command"),
    Subcommand(
        "completion",
        "bash|zsh|fish",
        "the script with which your shell completes all this",
        "completion.command",
    ),
    Subcommand(
        "events", "schema", "the JSON Schema of what -p prints as it works", "events_command"
    ),
    Subcommand("doctor", "", "what works here, and what to do about the rest", "doctor.command"),
)
SUBCOMMANDS: Mapping[str, Subcommand] = MappingProxyType({row.name: row for row in _ROWS})


def subcommand_help() -> str:
    """The lines about the subcommands in ``agent-tui --help``."""
    return "\n".join(
        f"  {f'{row.name} {row.operands}':<{_USAGE_COLUMNS}} {row.summary}" for row in _ROWS
    )
