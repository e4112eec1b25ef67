"""The table of subcommands, which drives dispatch, ``--help`` and completion."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from agent_tui.feature import Subcommand, own_features

_NAME_COLUMNS = 12


_ROWS = (
    Subcommand(
        "models", "list models; download, add or remove local ones", "agent_tui.cli.models.command"
    ),
    Subcommand(
        "sessions",
        "list, show, export, import, share, rename or delete sessions",
        "agent_tui.cli.sessions.command",
    ),
    Subcommand(
        "context",
        "print the messages a session would send to the model",
        "agent_tui.cli.context_command",
    ),
    Subcommand("compact", "compact a session into a new one", "agent_tui.cli.compact_command"),
    Subcommand("config", "show and change settings", "agent_tui.cli.config_command"),
    Subcommand(
        "permissions",
        "check what may run without asking; list or remove rules",
        "agent_tui.cli.permissions_command",
    ),
    Subcommand("trust", "list, add or remove trusted folders", "agent_tui.cli.trust_command"),
    Subcommand(
        "login", "sign in to an account or store a provider's key", "agent_tui.cli.login_command"
    ),
    Subcommand(
        "logout", "sign out of an account or delete a stored key", "agent_tui.cli.logout_command"
    ),
    Subcommand(
        "completion",
        "print the completion script for your shell",
        "agent_tui.cli.completion_command",
    ),
    Subcommand("events", "print the JSON Schema of stream-json", "agent_tui.cli.events_command"),
)
SUBCOMMANDS: Mapping[str, Subcommand] = MappingProxyType(
    {
        row.name: row
        for row in (*_ROWS, *(row for feature in own_features() for row in feature.subcommands))
    }
)
"""The core's, then those of features."""


def subcommand_help() -> str:
    """The lines about the subcommands in ``agent-tui --help``."""
    return row_lines((row.name, row.summary) for row in SUBCOMMANDS.values())


def row_lines(rows: Iterable[tuple[str, str]]) -> str:
    """Names and what they are, as such lines."""
    return "\n".join(f"  {name:<{_NAME_COLUMNS}} {summary}" for name, summary in rows)
