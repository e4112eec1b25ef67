"""``/find``: searches the chat."""

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front


@command("[text]", needs="screen")
async def find(front: Front, argument: str) -> None:
    """Search the chat."""
    from agent_tui.features.find.bar import FindBar  # Textual, which other fronts do without

    assert front.screen is not None
    await front.screen.show_bar(FindBar, argument)
