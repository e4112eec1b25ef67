"""Commands about what the program takes from the folder it works in."""

from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import command


@command(refusal="Cannot change what is trusted while responding. Use /abort first.")
async def trust(host: CommandHost, _argument: str) -> None:
    """Say whether this folder is obeyed."""
    from agent_tui.ui.trust_question import ask_about_workspace

    await ask_about_workspace(host, is_wanted=True)
