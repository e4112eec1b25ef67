"""What servers offer to a turn: tools and instructions."""

from dataclasses import dataclass
from typing import Final

from agent_tui.messages import ToolSpec

FIND_TOOLS: Final = "find_tools"


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """What the servers offer to the turns of a conversation; it changes only between turns.

    Args:
        specs: Their tools, the pinned ones first.
        found: Names of tools found by a search, in that order.
        finders: The tools that find and call those that do not fit.
        instructions: Names of servers, with each one's usage instructions.
    """

    specs: tuple[ToolSpec, ...] = ()
    found: tuple[str, ...] = ()
    finders: tuple[ToolSpec, ...] = ()
    instructions: tuple[tuple[str, str], ...] = ()
