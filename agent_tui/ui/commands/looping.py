"""The command that runs a prompt again and again."""

from agent_tui.agent.loop_plan import parse_loop
from agent_tui.errors import UsageError
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import Choice, command


@command(
    "<N | over a,b,c> [compress] <prompt>",
    choices=lambda _host: (
        Choice("3 ", "three times the same prompt"),
        Choice("over ", "once for each of a list: over a,b,c"),
    ),
    refusal="Cannot begin a loop while responding. Use /abort first.",
)
async def loop(host: CommandHost, argument: str) -> None:
    """Run a prompt again and again."""
    try:
        plan = parse_loop(argument)
    except UsageError as error:
        host.say(str(error), "warning")
        return
    if not host.runtime.conversation.model.name and not await host.set_up_model():
        return
    host.start(host.runtime.loop(plan))
