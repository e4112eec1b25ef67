"""What the prompt completes from and remembers in."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from agent_tui.commands.core.command import Completions
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.drafts.history import PromptHistory
from agent_tui.ui.prompt.file_index import FileIndex


def _always_sees() -> str:
    return ""


async def _no_news() -> bool:
    return False


async def no_resources(_typed: str) -> Mapping[str, str]:
    """Where there are no MCP servers."""
    return {}


@dataclass(frozen=True, slots=True)
class PromptSources:
    """Given to the prompt once they are there.

    Attributes:
        completions: The arguments of a command by name; what takes time is awaited.
        resources: What of MCP servers a mention may be, with what it is.
        look_for_commands: Brings the registry up to date; true where that changed it.
        image_refusal: Why the present model can be given no images; empty if it can.
    """

    registry: CommandRegistry
    completions: Callable[[str], Completions | Awaitable[Completions]]
    files: FileIndex
    history: PromptHistory
    image_refusal: Callable[[], str] = _always_sees
    resources: Callable[[str], Awaitable[Mapping[str, str]]] = no_resources
    look_for_commands: Callable[[], Awaitable[bool]] = _no_news
