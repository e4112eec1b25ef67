"""What asks a helper that only reads: the `explore` tool, and features without it."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from agent_tui.tools.base import Ability, ToolOutput


class ReadingHelpers(Ability):
    """Helpers that only read."""

    unavailable: ClassVar[str] = "Helpers are not available here."

    @abstractmethod
    async def answer_call(self, task: str, agent: str, say: Callable[[str], None]) -> ToolOutput:
        """Have a helper work on `task`, and return its answer.

        Args:
            task: The only message it gets.
            agent: Name of the kind of helper; empty for the general one.
            say: Takes a line for each step.

        Raises:
            ToolError: There is no such kind of helper.
        """
