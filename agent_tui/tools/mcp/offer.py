"""What the MCP servers give to the prompt of a conversation."""

from dataclasses import dataclass

from agent_tui.messages import ToolSpec


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """What the servers offer to the turns of a conversation; the same until a turn begins anew.

    Args:
        specs: Their tools, those that are always wanted first.
        found: Names of tools that were found by a search, in the order in which they were.
        finders: The tools that find and call those that do not fit.
        instructions: Names of servers, with what each says of how it is used.
    """

    specs: tuple[ToolSpec, ...] = ()
    found: tuple[str, ...] = ()
    finders: tuple[ToolSpec, ...] = ()
    instructions: tuple[tuple[str, str], ...] = ()
