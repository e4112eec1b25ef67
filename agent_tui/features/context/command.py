"""``/context``: the contents of the context window, in a screen or as lines."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front, Page, PageSection, Row
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
            title += f"; compacts automatically at {shown.compacts_at}%"
            title += f", to {shown.target_tokens:,} tokens" if shown.target_tokens else ""
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
