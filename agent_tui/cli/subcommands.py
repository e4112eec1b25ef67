"""The table of subcommands, which drives dispatch, ``--help`` and completion."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from agent_tui.feature import Subcommand, own_features

_NAME_COLUMNS = 12

_FIRST = (
    "models",
    "sessions",
    "context",
    "compact",
    "config",
    "permissions",
    "trust",
    "login",
    "logout",
    "completion",
    "events",
)
"""Subcommands that are listed first; the others follow in the order of their features."""


def _in_order() -> Iterator[Subcommand]:
    rows = {row.name: row for feature in own_features() for row in feature.subcommands}
    yield from (rows.pop(name) for name in _FIRST if name in rows)
    yield from rows.values()


SUBCOMMANDS: Mapping[str, Subcommand] = MappingProxyType({row.name: row for row in _in_order()})
"""The program's own, by their names."""


def subcommand_help() -> str:
    """The lines about the subcommands in ``agent-tui --help``."""
    return row_lines((row.name, row.summary) for row in SUBCOMMANDS.values())


def row_lines(rows: Iterable[tuple[str, str]]) -> str:
    """Names and what they are, as such lines."""
    return "\n".join(f"  {name:<{_NAME_COLUMNS}} {summary}" for name, summary in rows)
