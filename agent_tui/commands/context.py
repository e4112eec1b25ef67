"""What fills the context window."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent_tui.agent.compaction.cache_clock import CacheState
from agent_tui.agent.compaction.context_map import PART_LABELS, ContextMap, map_context
from agent_tui.commands.compaction import TIER_LABELS, KeepingChoice, keeping_choice
from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.pages import Page, PageSection, Row
from agent_tui.commands.core.short_words import counted
from agent_tui.compaction.outcome import CompactionPreview
from agent_tui.errors import AgentTuiError
from agent_tui.events import ContextWarning

FREED_HEADING = "What a compaction would free"


@command()
async def context(front: Front, _argument: str) -> None:
    """Show what fills the context window."""
    runtime = front.runtime
    shown = await map_context(runtime.conversation)
    await front.show(ContextPage(shown, runtime.preview_compaction, keeping_choice(front)))


@dataclass(frozen=True, slots=True)
class ContextPage:
    """The map of the window.

    Attributes:
        shown: What fills it.
        load_preview: Counts what a compaction would free, which takes a moment.
        choice: For the person to decide what is kept; None while the agent works.
    """

    shown: ContextMap
    load_preview: Callable[[], Awaitable[CompactionPreview]]
    choice: KeepingChoice | None = None

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
        if cache := cache_text(shown.cache):
            title += f"; {cache}"
        return Page(title, tuple(sections))

    async def _tiers(self) -> tuple[Row, ...]:
        try:
            preview = await self.load_preview()
        except AgentTuiError as error:
            return (("", str(error)),)
        rows = tuple((label, f"{tokens:,} tokens") for label, tokens in freed_by(preview))
        return (*rows, ("", request_cost(preview, self.shown.token_price)))


def cache_text(state: CacheState | None) -> str:
    """How the context stands in the provider's cache: ``cache warm ~4m``; empty if unknown."""
    match state:
        case None:
            return ""
        case CacheState(warmth="warm", left_s=left_s):
            return f"cache warm ~{max(round(left_s / 60), 1)}m"
        case CacheState(warmth="unsure"):
            return "cache may be cold"
        case CacheState():
            return "cache cold"


def warning_text(event: ContextWarning) -> str:
    """What a person is told when the context fills."""
    filled = f"Context window {event.usage.shown_percent} full."
    if not event.compacts_at:
        return f"{filled} /compact frees space."
    return f"{filled} Compacts automatically at {event.compacts_at}%; /compact does it now."


def freed_by(preview: CompactionPreview) -> tuple[tuple[str, int], ...]:
    """What ``/compact`` would free, and what each step of an automatic compaction would."""
    rows = [
        (f"automatic: {TIER_LABELS[tier]}", preview.freed.get(tier, 0))
        for tier in sorted(preview.messages)
    ]
    if preview.compact_tokens is not None:
        what = f"/compact: a summary of {counted(preview.summarised, 'message')}"
        rows.insert(0, (what, preview.tokens_before - preview.compact_tokens))
    return tuple(rows)


def request_cost(preview: CompactionPreview, token_price: float) -> str:
    """What a request takes now, and what ``/compact`` would save of it.

    `token_price` is in US dollars, and 0 where it is not known.
    """

    def amount(tokens: int) -> str:
        return f"{tokens:,} tokens" + (f" (${tokens * token_price:.4f})" if token_price else "")

    now, problem = f"Each request reads {amount(preview.tokens_before)}", preview.problem
    left = preview.tokens_after if preview.compact_tokens is None else preview.compact_tokens
    if left < preview.tokens_before:
        return f"{now}; compacting now would save {amount(preview.tokens_before - left)}."
    return f"{now}. {problem}" if problem else f"{now}; compacting now would save nothing."


def _share(tokens: int, shown: ContextMap) -> str:
    window = shown.usage.window
    return f"{tokens:,} tokens" + (f", {tokens * 100 / window:.1f}%" if window else "")
