"""What the prompt completes from and remembers in."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agent_tui.ui.commands.registry import CommandRegistry
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.prompt.history import PromptHistory


@dataclass(frozen=True, slots=True)
class PromptSources:
    """Given to the prompt once they are there. `choices`: the arguments of a command by name."""

    registry: CommandRegistry
    choices: Callable[[str], Iterable[str]]
    files: FileIndex
    history: PromptHistory
