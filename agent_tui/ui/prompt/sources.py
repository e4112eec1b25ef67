"""What the prompt completes from and remembers in."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent_tui.commands.core.command import Completions
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.drafts.history import PromptHistory
from agent_tui.ui.prompt.file_index import FileIndex


def _always_sees() -> str:
    return ""


async def _no_news() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class PromptSources:
    """Given to the prompt once they are there.

    Attributes:
        completions: The arguments of a command by name; what takes time is awaited.
        look_for_commands: Brings the registry up to date; true where that changed it.
        image_refusal: Why the present model can be given no images; empty if it can.
    """

    registry: CommandRegistry
    completions: Callable[[str], Completions | Awaitable[Completions]]
    files: FileIndex
    history: PromptHistory
    image_refusal: Callable[[], str] = _always_sees
    look_for_commands: Callable[[], Awaitable[bool]] = _no_news
