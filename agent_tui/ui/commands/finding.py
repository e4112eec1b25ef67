"""The command that searches the chat."""

from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import command


@command("[text]")
async def find(host: CommandHost, argument: str) -> None:
    """Search the chat (ctrl+f)."""
    await host.find(argument)
