"""A terminal coding agent whose context never runs out and never forgets.

For other programs: `Agent` and `tool`; `compact` and `acompact` for their lists of messages.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.api.agent import Agent
    from agent_tui.api.compacting import acompact, compact
    from agent_tui.api.tools import tool

__all__ = ["Agent", "__version__", "acompact", "compact", "tool"]
__version__ = "0.1.0"

_HOMES = {"Agent": "agent", "acompact": "compacting", "compact": "compacting", "tool": "tools"}


def __getattr__(name: str) -> object:
    """The public names, each imported when it is first used: the program starts without them."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"agent_tui.api.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
