"""A terminal coding agent whose context never runs out and never forgets.

For other programs: `Agent`, `tool` and `Session`; for their lists of messages, `compact` and
`acompact`; for plugins, `tool` and `command`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.api.agent import Agent
    from agent_tui.api.compacting import acompact, compact
    from agent_tui.api.session import Session
    from agent_tui.api.tools import tool
    from agent_tui.commands.core.command import command

__all__ = ["Agent", "Session", "__version__", "acompact", "command", "compact", "tool"]
__version__ = "0.1.0"

_HOMES = {
    "Agent": "api.agent",
    "Session": "api.session",
    "acompact": "api.compacting",
    "command": "commands.core.command",
    "compact": "api.compacting",
    "tool": "api.tools",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: the program starts without them."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"agent_tui.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
