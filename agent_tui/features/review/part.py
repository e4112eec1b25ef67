"""What other features ask a conversation for: reviews of the changes in any folder."""

from collections.abc import Sequence
from pathlib import Path

from agent_tui.agent.activity import Emit
from agent_tui.agent.part import Part
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.reviews import FolderReviews
from agent_tui.features.review.command import show_changes
from agent_tui.tools.base import Ability


class ReviewPart(Part):
    """Offers reviews of folders."""

    def abilities(self, emit: Emit) -> Sequence[Ability]:
        """The reviews."""
        return (_Reviews(),)


class _Reviews(FolderReviews):
    async def show_changes(self, front: Front, folder: Path) -> str:
        return await show_changes(front, f"folder {folder}")
