"""The table of subcommands, which drives dispatch, ``--help`` and completion."""

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import NamedTuple, Protocol, cast

_NAME_COLUMNS = 12


class SubcommandModule(Protocol):
    """What the module of a subcommand offers."""

    def build_parser(self) -> argparse.ArgumentParser:
        """The parser of its command line."""
        ...

    def run_command(self, argv: Sequence[str], /) -> int:
        """Run it with the arguments after its name; returns the exit code."""
        ...


class Subcommand(NamedTuple):
    """A row of the table.

    Attributes:
        name: The word typed after ``agent-tui``.
        summary: What it does, in one line.
        module: Its module below ``agent_tui.cli``; imported only when needed.
    """

    name: str
    summary: str
    module: str

    def load(self) -> SubcommandModule:
        """Import the module."""
        return cast(SubcommandModule, import_module(f"agent_tui.cli.{self.module}"))


_ROWS = (
    Subcommand("models", "list models; download, add or remove local ones", "models.command"),
    Subcommand(
        "sessions",
        "list, show, export, import, share, rename or delete sessions",
        "sessions.command",
    ),
    Subcommand("worktrees", "list and remove the git worktrees of --worktree", "worktrees.command"),
    Subcommand(
        "context", "print the messages a session would send to the model", "context_command"
    ),
    Subcommand("compact", "compact a session into a new one", "compact_command"),
    Subcommand("why", "explain why a line of a file is there", "why_command"),
    Subcommand("rules", "list rules that your repeated corrections suggest", "rules_command"),
    Subcommand("config", "show and change settings", "config_command"),
    Subcommand(
        "permissions",
        "check what may run without asking; list or remove rules",
        "permissions_command",
    ),
    Subcommand("trust", "list, add or remove trusted folders", "trust_command"),
    Subcommand("mcp", "list, add, remove or log in to MCP servers", "mcp_command"),
    Subcommand("login", "sign in to an account or store a provider's key", "login_command"),
    Subcommand("logout", "sign out of an account or delete a stored key", "logout_command"),
    Subcommand("acp", "run as an agent for an editor (Zed, JetBrains, Neovim ...)", "acp_command"),
    Subcommand("completion", "print the completion script for your shell", "completion_command"),
    Subcommand("events", "print the JSON Schema of stream-json", "events_command"),
    Subcommand("doctor", "check the setup and suggest fixes", "doctor.command"),
)
SUBCOMMANDS: Mapping[str, Subcommand] = MappingProxyType({row.name: row for row in _ROWS})


def subcommand_help() -> str:
    """The lines about the subcommands in ``agent-tui --help``."""
    return "\n".join(f"  {row.name:<{_NAME_COLUMNS}} {row.summary}" for row in _ROWS)
