"""The running conversation: its turn, what is queued for it, a prompt again and again."""

from agent_tui.agent.loop import parse_loop
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, has_model
from agent_tui.errors import UsageError
from agent_tui.events import Notice, NoticeSubject
from agent_tui.safe_text import strip_control_characters


@command()
async def abort(front: Front, _argument: str) -> None:
    """Stop what is running and keep the partial output."""
    if not front.interrupt():
        front.say("Nothing is running.")


@command("<text>")
async def queue(front: Front, argument: str) -> None:
    """Send a message to the running turn."""
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


@command(
    "<N | over a,b,c> [compress] <prompt>",
    completions=lambda _front: (
        Completion("3 ", "run the prompt three times"),
        Completion("over ", "run it once for each item: over a,b,c"),
    ),
    refusal="Cannot start a loop while the agent works. Use /abort first.",
)
async def loop(front: Front, argument: str) -> None:
    """Run a prompt repeatedly."""
    try:
        plan = parse_loop(argument)
    except UsageError as error:
        front.say(str(error), "warning")
        return
    if await has_model(front):
        await front.run(front.runtime.loop(plan))


@command("<question>")
async def btw(front: Front, argument: str) -> None:
    """Ask a side question, even during a turn; it stays out of the context."""
    if not argument:
        front.say("Add a question: /btw what does this flag do?", "warning")
        return
    if not await has_model(front):
        return
    if front.can_ask:  # the answer can take a while, and others may come before it
        _tell(front, f"/btw {argument}", "question")
    answer = await front.runtime.ask_aside(argument)
    _tell(front, strip_control_characters(answer), "answer")
    front.show_events((front.runtime.conversation.totals,))


def _tell(front: Front, text: str, about: NoticeSubject) -> None:
    """Say `text`; a screen shows what it is."""
    if front.screen is None:
        front.say(text)
    else:
        front.show_events((Notice("info", text, about),))
