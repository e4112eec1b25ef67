"""The running conversation: its turn, queue, tools and output."""

from collections.abc import Sequence

from agent_tui.agent.part import offered_tools
from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import (
    Front,
    Page,
    PageSection,
    has_model,
)
from agent_tui.messages import BashExecutionMessage, ToolResultMessage, ToolSpec
from agent_tui.safe_text import safe_output
from agent_tui.sessions.entries import MessageEntry
from agent_tui.tools.selection import select_tools


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


@command()
async def tools(front: Front, _argument: str) -> None:
    """List the model's tools."""
    runtime = front.runtime
    offered = runtime.conversation.prompt.tools
    tokens = runtime.services.counter.count_tools(offered)
    model = runtime.conversation.model_info
    model_id = runtime.conversation.model.model_id
    is_planning = runtime.conversation.permissions.mode == "plan"
    specs = offered_tools(
        runtime.parts,
        select_tools(runtime.services.toolbox.specs, model_id, is_planning=is_planning),
        model.window,
        is_planning=is_planning,
    )
    await front.show(tools_page(offered, specs, tokens))


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


def tools_page(offered: Sequence[ToolSpec], specs: Sequence[ToolSpec], tokens: int) -> Page:
    """The tools on offer, and those of `specs` that do not fit the model's window.

    Each with the first sentence of its full description. `tokens` is the size of those on offer.
    """
    names = {spec.name for spec in offered}
    rows = [(spec.name, _first_sentence(spec.description)) for spec in specs]
    has = tuple(row for row in rows if row[0] in names)
    left_out = tuple(row for row in rows if row[0] not in names)
    sections = [PageSection("", has)]
    if left_out:
        sections.append(PageSection("Left out: the model's context window is too small", left_out))
    title = f"The model's tools · about {tokens:,} tokens per request"
    return Page(title, tuple(sections))


def _first_sentence(text: str) -> str:
    line = " ".join(text.strip().partition("\n\n")[0].split())
    sentence, dot, _ = line.partition(". ")
    return sentence + dot.strip()
