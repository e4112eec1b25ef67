"""A terminal coding agent whose context never runs out and never forgets.

For other programs: `Agent`, `tool` and `Session`; for their lists of messages, `compact` and
`acompact`. For plugins: `tool`, `command`, `hook`, `CompactionStrategy`, `ExportFormat`,
`Feature`, `ImportFormat`, `ModelProvider`, and what these take and give.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui._version import __version__
    from agent_tui.agent.hook import hook
    from agent_tui.api.agent import Agent
    from agent_tui.api.compacting import acompact, compact
    from agent_tui.api.session import Session
    from agent_tui.api.tools import tool
    from agent_tui.commands.core.checks import Check, CheckContext
    from agent_tui.commands.core.command import command
    from agent_tui.compaction.strategies.registry import (
        CompactionStrategy,
        Shortening,
        StrategyMessage,
        StrategyRequest,
    )
    from agent_tui.feature import Feature, FeatureCheck, Subcommand
    from agent_tui.providers.registry import ModelProvider
    from agent_tui.sessions.export.formats import ExportedSession, ExportFormat
    from agent_tui.sessions.importers.builder import (
        ForeignSession,
        ImportFormat,
        SessionBuilder,
        SessionEnd,
        SessionFinder,
        SessionHead,
    )

__all__ = [
    "Agent",
    "Check",
    "CheckContext",
    "CompactionStrategy",
    "ExportFormat",
    "ExportedSession",
    "Feature",
    "FeatureCheck",
    "ForeignSession",
    "ImportFormat",
    "ModelProvider",
    "Session",
    "SessionBuilder",
    "SessionEnd",
    "SessionFinder",
    "SessionHead",
    "Shortening",
    "StrategyMessage",
    "StrategyRequest",
    "Subcommand",
    "__version__",
    "acompact",
    "command",
    "compact",
    "hook",
    "tool",
]

_HOMES = {
    "Agent": "api.agent",
    "Check": "commands.core.checks",
    "CheckContext": "commands.core.checks",
    "CompactionStrategy": "compaction.strategies.registry",
    "ExportFormat": "sessions.export.formats",
    "ExportedSession": "sessions.export.formats",
    "Feature": "feature",
    "FeatureCheck": "feature",
    "ForeignSession": "sessions.importers.builder",
    "ImportFormat": "sessions.importers.builder",
    "ModelProvider": "providers.registry",
    "Session": "api.session",
    "SessionBuilder": "sessions.importers.builder",
    "SessionEnd": "sessions.importers.builder",
    "SessionFinder": "sessions.importers.builder",
    "SessionHead": "sessions.importers.builder",
    "Shortening": "compaction.strategies.registry",
    "StrategyMessage": "compaction.strategies.registry",
    "StrategyRequest": "compaction.strategies.registry",
    "Subcommand": "feature",
    "__version__": "_version",
    "acompact": "api.compacting",
    "command": "commands.core.command",
    "compact": "api.compacting",
    "hook": "agent.hook",
    "tool": "api.tools",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: the program starts without them."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"agent_tui.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
