"""The running conversation: its turn, queue and output."""

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import (
    Front,
    Page,
    PageSection,
    has_model,
)
from agent_tui.messages import BashExecutionMessage, ToolResultMessage
from agent_tui.safe_text import safe_output
from agent_tui.sessions.entries import MessageEntry


@command()
async def abort(front: Front, _argument: str) -> None:
    """Stop what is running and keep the partial output."""
    if not front.interrupt():
        front.say("Nothing is running.")


@command("<text>")
async def queue(front: Front, argument: str) -> None:
    """Send a message to the running turn, as Enter does."""
    if argument:
        await front.send(argument)
    else:
        front.say("Add the message: /queue <text>", "warning")


@command(aliases=("continue",), refusal="A turn is already running. Use /queue to add to it.")
async def retry(front: Front, _argument: str) -> None:
    """Continue after an error or interruption."""
    if not front.runtime.conversation.log.entries:
        front.say("Nothing to continue yet.", "warning")
    elif await has_model(front):
        await front.run(front.runtime.continue_turn())


@command()
async def output(front: Front, _argument: str) -> None:
    """Show the last output in full."""
    for entry in reversed(front.runtime.conversation.log.path_entries()):
        match entry:
            case MessageEntry(message=ToolResultMessage() as result):
                title, text = result.tool_name, result.text
            case MessageEntry(message=BashExecutionMessage() as own):
                title, text = f"! {own.command}", own.output
            case _:
                continue
        lines = safe_output(text).rstrip().split("\n")
        rows = tuple(("", line) for line in lines)
        await front.show(Page(f"Output of {title}", (PageSection("", rows),)))
        return
    front.say("No output yet.")
