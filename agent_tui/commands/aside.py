"""A question beside the conversation."""

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front, has_model
from agent_tui.safe_text import strip_control_characters


@command("<question>")
async def btw(front: Front, argument: str) -> None:
    """Ask a side question, even during a turn; it stays out of the context."""
    if not argument:
        front.say("Add a question: /btw what does this flag do?", "warning")
        return
    if not await has_model(front):
        return
    if front.can_ask:  # the answer can take a while, and others may come before it
        front.say(f"/btw {argument}")
    answer = await front.runtime.ask_aside(argument)
    front.say(strip_control_characters(answer))
    front.show_events((front.runtime.conversation.totals,))
