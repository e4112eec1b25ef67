"""``/context``: the contents of the context window, in a screen or as lines."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_tui.agent.part import offered_tools
from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import (
    Front,
    Page,
    PageSection,
    Row,
)
from agent_tui.compaction.outcome import CompactionPreview
from agent_tui.errors import AgentTuiError
from agent_tui.features.context.compact import keeping_choice
from agent_tui.features.context.contents import (
    FREED_HEADING,
    PART_LABELS,
    ContextMap,
    cache_text,
    map_context,
    request_cost,
    savings_of,
)
from agent_tui.messages import ToolSpec
from agent_tui.tools.selection import select_tools

if TYPE_CHECKING:  # a run without the screen imports no Textual
    from textual.screen import Screen

    from agent_tui.ui.screens.modal import FollowUp


@command()
async def context(front: Front, _argument: str) -> None:
    """Show what fills the context window."""
    runtime = front.runtime
    shown = await map_context(runtime.conversation)
    await front.show(ContextPage(shown, runtime.preview_compaction, keeping_choice(front)))


@dataclass(frozen=True, slots=True)
class ContextPage:
    """The page of the context window.

    Attributes:
        shown: The contents.
        load_preview: Counts what a compaction would free; takes a moment.
        choose: Lets the user decide what is kept; None while the agent works.
    """

    shown: ContextMap
    load_preview: Callable[[], Awaitable[CompactionPreview]]
    choose: "FollowUp | None" = None

    def make_screen(self) -> "Screen[FollowUp]":
        """The screen, which leads to the choice."""
        from agent_tui.features.context.screen import ContextScreen

        return ContextScreen(self.shown, self.load_preview, self.choose)

    async def page(self) -> Page:
        """Tokens of each kind, what each tier would free, the largest messages."""
        shown, usage = self.shown, self.shown.usage
        sections = [
            PageSection(
                "", tuple((PART_LABELS[p.kind], _share(p.tokens, shown)) for p in shown.parts)
            ),
            PageSection(FREED_HEADING, await self._tiers()),
        ]
        if shown.largest:
            rows = tuple((large.label, _share(large.tokens, shown)) for large in shown.largest)
            sections.append(PageSection("Largest messages", rows))
        about = "about " if usage.is_estimate else ""
        filled = f"{about}{usage.used:,} of {usage.window:,} tokens, {usage.shown_percent}"
        title = f"Context window: {filled}"
        if shown.compacts_at:
            title += f"; compacts automatically {shown.compaction_words}"
        if cache := cache_text(shown.cache):
            title += f"; {cache}"
        return Page(title, tuple(sections))

    async def _tiers(self) -> tuple[Row, ...]:
        try:
            preview = await self.load_preview()
        except AgentTuiError as error:
            return (("", str(error)),)
        rows = tuple((label, f"{tokens:,} tokens") for label, tokens in savings_of(preview))
        return (*rows, ("", request_cost(preview, self.shown.token_price)))


def _share(tokens: int, shown: ContextMap) -> str:
    window = shown.usage.window
    return f"{tokens:,} tokens" + (f", {tokens * 100 / window:.1f}%" if window else "")


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
