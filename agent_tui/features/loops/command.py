"""The command that runs a prompt repeatedly."""

from functools import partial

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, has_model
from agent_tui.errors import UsageError
from agent_tui.features.loops.part import LoopsPart
from agent_tui.features.loops.plan import parse_loop


@command(
    "<N | over a,b,c> [compress] <prompt>",
    completions=lambda _front: (
        Completion("3 ", "run the prompt three times"),
        Completion("over ", "run it once for each item: over a,b,c"),
    ),
    refusal="Cannot start a loop while the agent works. {stop}",
)
async def loop(front: Front, argument: str) -> None:
    """Run a prompt repeatedly."""
    try:
        plan = parse_loop(argument)
    except UsageError as error:
        front.say(str(error), "warning")
        return
    if await has_model(front):
        runtime = front.runtime
        await front.run(runtime.carry_out(partial(runtime.part(LoopsPart).run, plan)))
