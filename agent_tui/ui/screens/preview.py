"""Shows what a compaction would do: each tier's gain, and the facts that stay in any case."""

import time
from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.types import CSSPathType
from textual.widget import Widget
from textual.widgets import Static

from agent_tui.commands.compaction import TIER_LABELS, kept_facts, last_tier, verdict
from agent_tui.compaction.preview import CompactionPreview
from agent_tui.errors import AgentTuiError
from agent_tui.safe_text import safe_text
from agent_tui.tokens import ContextUsage
from agent_tui.ui.chat.activity_line import ActivityLine, ActivityState
from agent_tui.ui.keys_line import KeysLine
from agent_tui.ui.screens.page import section_widgets
from agent_tui.ui.screens.reading import ReadingScreen

_COUNT_WIDTHS = (10, 10, 10, 13)
"""Messages, tokens freed, tokens left, the bar's text."""

_LEAST_LABEL_WIDTH = 12
_WIDEST_LABEL = 34


class TierTable(Widget):
    """A row for the present size and one for each tier; a mark where automatic work stops."""

    def __init__(self, preview: CompactionPreview, present_label: str) -> None:
        super().__init__(id="tier-table")
        self._preview = preview
        self._present_label = present_label
        self.styles.height = len(preview.tiers) + 2

    def render(self) -> Content:
        """The table at the present width."""
        room = self.content_size.width - sum(_COUNT_WIDTHS)
        label_width = min(max(room, _LEAST_LABEL_WIDTH), _WIDEST_LABEL)
        return Content("\n").join(tier_rows(self._preview, self._present_label, label_width))


def tier_rows(preview: CompactionPreview, present_label: str, label_width: int) -> list[Content]:
    """The table's rows: a heading, the context as it is, then the tiers.

    Args:
        preview: What is shown.
        present_label: The context as the status bar shows it now.
        label_width: Cells of the first column.
    """
    present = ("", "", f"{preview.tokens_before:,}", present_label)
    rows = [
        _row("  tier", ("messages", "frees", "leaves", ""), label_width, "$foreground-disabled"),
        _row("  current size", present, label_width, "$foreground"),
    ]
    last = last_tier(preview)
    for tier in preview.tiers:
        mark = "▸" if tier is last else " "
        style = "$foreground-muted" if last is not None and not tier.is_used else "$foreground"
        bar = ContextUsage(tier.tokens_after, preview.window, is_estimate=True).label
        counts = (f"{tier.messages:,}", f"{tier.freed:,}", f"{tier.tokens_after:,}", bar)
        label = f"{mark} {tier.tier}  {TIER_LABELS[tier.tier]}"
        rows.append(_row(label, counts, label_width, f"bold {style}" if tier is last else style))
    return rows


def _row(label: str, counts: tuple[str, str, str, str], label_width: int, style: str) -> Content:
    cells = (f"{text:>{width}}" for text, width in zip(counts, _COUNT_WIDTHS, strict=True))
    left = Content(label).truncate(label_width, ellipsis=True, pad=True)
    return Content.assemble(left, "".join(cells)).stylize(style)


class PreviewScreen(ReadingScreen):
    """Counts while it is open already, then shows the outcome. Writes nothing.

    Args:
        load: Works the preview out.
        present_label: The context as the status bar shows it; asked when `load` is done.
        clock: Monotonic seconds, to say for how long it counts.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "preview.tcss"]

    def __init__(
        self,
        load: Callable[[], Awaitable[CompactionPreview]],
        present_label: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._load = load
        self._present_label = present_label
        self._clock = clock

    def compose(self) -> ComposeResult:
        """The frame, with a line that tells of the counting."""
        with VerticalScroll(id="page", classes="frame", can_focus=False):
            yield Static("What a compaction would do now", id="page-title", markup=False)
            yield ActivityLine(self._clock)
            keys = "↑↓ scroll · /compact summarises · esc close"
            yield KeysLine(keys, id="page-keys")

    def on_mount(self) -> None:
        """Begin to count."""
        line = self.query_one(ActivityLine)
        line.show(ActivityState("Counting", self._clock(), can_stop=False))
        self.run_worker(self._count())

    async def _count(self) -> None:
        try:
            preview = await self._load()
        except AgentTuiError as error:
            found = [Static(safe_text(str(error)), classes="preview-note", markup=False)]
        else:
            found = _preview_widgets(preview, self._present_label())
        line = self.query_one(ActivityLine)
        await self.query_one("#page").mount_all(found, before=line)
        await line.remove()


def _preview_widgets(preview: CompactionPreview, present_label: str) -> list[Widget]:
    """The table, what follows from it, and the facts that stay."""
    notes = [verdict(preview)]
    if preview.problem:
        notes.append(f"No summary: {safe_text(preview.problem, keep_newlines=False)}")
    return [
        TierTable(preview, present_label),
        *(Static(note, classes="preview-note", markup=False) for note in notes),
        *section_widgets(kept_facts(preview.ledger), is_after_other=True),
    ]
