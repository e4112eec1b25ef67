"""A terminal coding agent whose context never runs out and never forgets.

For other programs: `compact` and `acompact` make a list of chat messages smaller.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.api.compacting import acompact, compact

__all__ = ["__version__", "acompact", "compact"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """The public names, each imported when it is first used: the program starts without them."""
    if name in ("acompact", "compact"):
        from agent_tui.api import compacting

        return getattr(compacting, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
