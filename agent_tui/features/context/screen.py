"""The screen of ``/context``: what fills the window, and what a compaction would free."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.types import CSSPathType
from textual.widget import Widget
from textual.widgets import Static

from agent_tui.compaction.outcome import CompactionPreview
from agent_tui.errors import AgentTuiError
from agent_tui.features.context.contents import (
    FREED_HEADING,
    PART_LABELS,
    ContextMap,
    Part,
    PartKind,
    cache_text,
    request_cost,
    savings_of,
)
from agent_tui.features.context.keeping_screen import LeadingScreen
from agent_tui.safe_text import safe_text
from agent_tui.ui.parts import KeysLine
from agent_tui.ui.screens.modal import FollowUp

STYLES: dict[PartKind, str] = {
    "system": "$secondary",
    "tools": "$accent",
    "summary": "$warning",
    "pinned": "$text-warning",
    "you": "$primary",
    "replies": "$success",
    "results": "$error",
    "free": "$foreground-disabled",
}
SIGNS: dict[PartKind, str] = {
    "system": "█",
    "tools": "▓",
    "summary": "▒",
    "pinned": "▤",
    "you": "▞",
    "replies": "▚",
    "results": "░",
    "free": "·",
}
"""A sign for each kind, so that the bar can be read without colours."""
_NUMBER_WIDTH = 10


def bar_cells(parts: tuple[Part, ...], width: int) -> list[tuple[PartKind, int]]:
    """`width` cells shared out by tokens; every part that is not empty gets one at least."""
    total = sum(part.tokens for part in parts)
    if total == 0 or width <= 0:
        return [("free", max(width, 0))]
    shares: list[tuple[PartKind, int]] = [
        (part.kind, max(round(part.tokens * width / total), 1)) for part in parts if part.tokens
    ]
    spare = width - sum(cells for _, cells in shares)
    while spare:
        widest = max(range(len(shares)), key=lambda i: shares[i][1])
        step = spare if spare > 0 else -1
        shares[widest] = (shares[widest][0], shares[widest][1] + step)
        spare -= step
    return shares


class ContextBar(Widget):
    """Two rows of signs: the share of each kind, and where compaction starts."""

    def __init__(self, shown: ContextMap) -> None:
        super().__init__(id="context-bar")
        self._shown = shown

    def render(self) -> Content:
        """The bar at the present width."""
        row = Content.assemble(
            *(
                (SIGNS[kind] * cells, STYLES[kind])
                for kind, cells in bar_cells(self._shown.parts, self.content_size.width)
            )
        )
        return Content("\n").join([row, row, self._mark()])

    def _mark(self) -> Content:
        """A sign below the place where automatic compaction starts, with words beside it."""
        percent, width = self._shown.compacts_at, self.content_size.width
        if not percent:
            return Content("")
        at, words = (
            min(width * percent // 100, width - 1),
            f"compacts {self._shown.compaction_words}",
        )
        if at + 2 + len(words) <= width:
            text = f"{' ' * at}▲ {words}"
        else:
            text = f"{words} ▲".rjust(at + 1)
        return Content.styled(text, "$foreground-muted").truncate(width)


class ContextLine(Widget):
    """A label at the left, tokens and percent at the right."""

    def __init__(self, label: Content, tokens: int, window: int) -> None:
        super().__init__(classes="context-line")
        self._label = label
        self._tokens = tokens
        self._window = window

    def render(self) -> Content:
        """The line at the present width."""
        share = f"{self._tokens * 100 / self._window:.1f}%" if self._window else ""
        numbers = f"{self._tokens:>{_NUMBER_WIDTH},}{share:>8}"
        room = max(self.content_size.width - len(numbers), 0)
        label = self._label.truncate(room, ellipsis=True, pad=True)
        return Content.assemble(label, (numbers, "$foreground-muted"))


class ContextScreen(LeadingScreen):
    """The map at once; what a compaction would free as soon as that is counted.

    Args:
        shown: The map.
        load_preview: Computes the effect of a compaction.
        choose: Lets the user decide what a compaction keeps; None while the agent works.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = [
        "../../ui/screens/modal.tcss",
        "../../ui/screens/page.tcss",
        "screen.tcss",
    ]

    def __init__(
        self,
        shown: ContextMap,
        load_preview: Callable[[], Awaitable[CompactionPreview]],
        choose: FollowUp | None,
    ) -> None:
        super().__init__(choose)
        self._shown = shown
        self._load = load_preview

    def compose(self) -> ComposeResult:
        """Title, bar, legend, tiers, largest messages."""
        usage = self._shown.usage
        about = "about " if usage.is_estimate else ""
        title = Content.assemble(
            ("Context window", "bold"),
            (
                f"   {about}{usage.used:,} of {usage.window:,} tokens, {usage.shown_percent}"
                + (f" · {cache}" if (cache := cache_text(self._shown.cache)) else ""),
                "$foreground-muted",
            ),
        )
        with VerticalScroll(id="page", classes="frame", can_focus=False):
            yield Static(title, id="page-title", markup=False)
            yield ContextBar(self._shown)
            for part in self._shown.parts:
                label = Content.assemble(
                    (f"{SIGNS[part.kind]} ", STYLES[part.kind]), PART_LABELS[part.kind]
                )
                yield ContextLine(label, part.tokens, usage.window)
            yield Static(FREED_HEADING, classes="page-heading", markup=False)
            with Vertical(id="context-tiers"):
                yield Static("Counting…", classes="context-note", markup=False)
            if self._shown.largest:
                yield Static("Largest messages", classes="page-heading", markup=False)
            for message in self._shown.largest:
                label = Content(safe_text(message.label, keep_newlines=False))
                yield ContextLine(label, message.tokens, usage.window)
            keys = f"↑↓ scroll · {self.choose_hint}/compact frees tokens · esc close"
            yield KeysLine(keys, id="page-keys")

    def on_mount(self) -> None:
        """Start counting what a compaction would free."""
        self.run_worker(self._count())

    async def _count(self) -> None:
        try:
            preview = await self._load()
        except AgentTuiError as error:
            found = [_note(str(error))]
        else:
            cost, rows = request_cost(preview, self._shown.token_price), savings_of(preview)
            found = [
                *(ContextLine(Content(label), freed, preview.window) for label, freed in rows),
                _note(cost),
            ]
        tiers = self.query_one("#context-tiers")
        await tiers.remove_children()
        await tiers.mount_all(found)


def _note(text: str) -> Static:
    return Static(safe_text(text, keep_newlines=False), classes="context-note", markup=False)
