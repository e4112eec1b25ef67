"""Reviews of the changes in a folder, which other features ask for by their class."""

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from agent_tui.commands.core.front import Front
from agent_tui.tools.base import Ability


class FolderReviews(Ability):
    """Shows the changes in any folder. A feature's part has it among its `abilities`."""

    unavailable: ClassVar[str] = "Nothing here shows the changes in a folder."

    @abstractmethod
    async def show_changes(self, front: Front, folder: Path) -> str:
        """Show what changed in `folder`, until the user has read it.

        In a worktree that agent-tui made, that is all work since it began; elsewhere what is not
        committed.

        Returns:
            That nothing has changed, for the user; empty if changes were shown.

        Raises:
            AgentTuiError: Git cannot tell.
        """
