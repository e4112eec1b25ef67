"""The running conversation: its turn, what is queued for it, a prompt again and again."""

from agent_tui.agent.loops.plan import parse_loop
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, has_model
from agent_tui.errors import UsageError


@command()
async def abort(front: Front, _argument: str) -> None:
    """Stop what runs; what came is kept."""
    if not front.interrupt():
        front.say("Nothing is running.")


@command("<text>")
async def queue(front: Front, argument: str) -> None:
    """Say something to the running turn."""
    if argument:
        await front.send(argument)
    else:
        front.say("What should be queued? Write /queue and the message.", "warning")


@command(aliases=("continue",), refusal="A turn is running already. Use /queue to add to it.")
async def retry(front: Front, _argument: str) -> None:
    """Go on after an error or an interruption."""
    if not front.runtime.conversation.log.entries:
        front.say("There is nothing to go on with yet.", "warning")
    elif await has_model(front):
        await front.run(front.runtime.continue_turn())


@command(
    "<N | over a,b,c> [compress] <prompt>",
    completions=lambda _front: (
        Completion("3 ", "three times the same prompt"),
        Completion("over ", "once for each of a list: over a,b,c"),
    ),
    refusal="Cannot begin a loop while the agent works. Use /abort first.",
)
async def loop(front: Front, argument: str) -> None:
    """Run a prompt again and again."""
    try:
        plan = parse_loop(argument)
    except UsageError as error:
        front.say(str(error), "warning")
        return
    if await has_model(front):
        await front.run(front.runtime.loop(plan))
