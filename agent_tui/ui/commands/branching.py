"""Commands about the tree of a session: going back in it, and forking it."""

from agent_tui.errors import AgentTuiError
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import command

_BUSY = "Cannot go back while responding. Use /abort first."


@command(refusal=_BUSY)
async def tree(host: CommandHost, _argument: str) -> None:
    """Go back to an earlier message."""
    from agent_tui.ui.screens.tree import TreeScreen

    runtime = host.runtime
    if not runtime.conversation.log.entries:
        host.say("There is nothing to go back to yet.")
        return
    choice = await host.ask(TreeScreen(runtime.conversation.log, runtime.branches.label))
    if choice is None:
        return
    try:
        match choice.action:
            case "go back":
                host.show_events(await runtime.branches.go_back(choice.entry_id))
            case "fork":
                host.show_events(await runtime.branches.fork(choice.entry_id))
            case "summarise":
                host.start(runtime.go_back_with_summary(choice.entry_id))
    except AgentTuiError as error:
        host.say(str(error), "warning")


@command(refusal="Cannot fork while responding. Use /abort first.")
async def fork(host: CommandHost, _argument: str) -> None:
    """Go on in a copy of this session."""
    try:
        host.show_events(await host.runtime.branches.fork())
    except AgentTuiError as error:
        host.say(str(error), "warning")
