"""What servers offer: tools and instructions for a turn, and prompts for the user."""

import re
from dataclasses import dataclass
from typing import Final

from agent_tui.messages import ToolSpec

FIND_TOOLS: Final = "find_tools"
_NOT_IN_NAMES = re.compile(r"[^\w-]+")


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


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument of a prompt."""

    name: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class ServerPrompt:
    """A prompt; `own_name` is the server's name for it."""

    server: str
    own_name: str
    description: str
    arguments: tuple[PromptArgument, ...] = ()

    @property
    def name(self) -> str:
        """What the user types after the slash: ``server:prompt``."""
        return f"{self.server}:{_NOT_IN_NAMES.sub('-', self.own_name)}".lower()

    @property
    def hint(self) -> str:
        """Its arguments, shown as for commands."""
        return " ".join(f"<{a.name}>" if a.is_required else f"[{a.name}]" for a in self.arguments)
