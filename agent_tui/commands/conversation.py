"""The running conversation: its turn, what is queued for it, a prompt again and again."""

from agent_tui.agent.loops.plan import parse_loop
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, has_model
from agent_tui.errors import UsageError


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
