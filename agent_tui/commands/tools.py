"""The tools the model has, and what the last one printed."""

from collections.abc import Sequence

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front, Page, PageSection
from agent_tui.messages import BashExecutionMessage, ToolResultMessage, ToolSpec
from agent_tui.safe_text import safe_output
from agent_tui.sessions.entries import MessageEntry
from agent_tui.tools.suited import suited_tools


@command()
async def tools(front: Front, _argument: str) -> None:
    """List the model's tools."""
    runtime = front.runtime
    offered = runtime.conversation.prompt.tools
    tokens = runtime.services.counter.count_tools(offered)
    model = runtime.conversation.model_info
    model_id = runtime.conversation.model.model_id
    specs = suited_tools(
        runtime.services.toolbox.specs,
        model_id,
        model.window,
        is_planning=runtime.conversation.permissions.mode == "plan",
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
    """The tools the model is offered, and those of `specs` that its window has no room for.

    Each with the first sentence of its full description. `tokens` is what they take.
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
