"""Screens about the context: its contents, a preview of a compaction, and what that keeps."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.types import CSSPathType
from textual.widget import Widget
from textual.widgets import Static

from agent_tui.commands.compaction import PREVIEW_TITLE, PreviewPage
from agent_tui.commands.context import (
    FREED_HEADING,
    PART_LABELS,
    ContextMap,
    ContextPage,
    Part,
    PartKind,
    cache_text,
    request_cost,
    savings_of,
)
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.proposal import Decision, PieceMark, Proposal
from agent_tui.errors import AgentTuiError
from agent_tui.providers.client import OnProgress
from agent_tui.safe_text import safe_text
from agent_tui.ui.chat.lines_above_prompt import ActivityLine, ActivityState
from agent_tui.ui.parts import KeysLine
from agent_tui.ui.screens.modal import LeadingScreen, section_widgets
from agent_tui.ui.screens.picker import PickerRow, PickerScreen

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


class PreviewScreen(LeadingScreen):
    """Counts while it is open already, then shows the outcome. Writes nothing.

    Args:
        page: Computes the preview.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "preview.tcss"]

    def __init__(self, page: PreviewPage) -> None:
        super().__init__(can_choose=page.choice is not None)
        self._page = page

    def compose(self) -> ComposeResult:
        """The frame, with a line about the counting."""
        with VerticalScroll(id="page", classes="frame", can_focus=False):
            yield Static(PREVIEW_TITLE, id="page-title", markup=False)
            yield ActivityLine(time.monotonic)
            keys = f"↑↓ scroll · {self.choose_hint}/compact summarises · esc close"
            yield KeysLine(keys, id="page-keys")

    def on_mount(self) -> None:
        """Start counting."""
        line = self.query_one(ActivityLine)
        line.show(ActivityState("Counting", time.monotonic(), can_stop=False))
        self.run_worker(self._count())

    async def _count(self) -> None:
        try:
            page = await self._page.page()
        except AgentTuiError as error:
            found = [Static(safe_text(str(error)), classes="preview-note", markup=False)]
        else:
            found = list(section_widgets(page.sections))
        line = self.query_one(ActivityLine)
        await self.query_one("#page").mount_all(found, before=line)
        await line.remove()


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
        at, words = min(width * percent // 100, width - 1), f"compacts at {percent}%"
        words += f", to {self._shown.target_tokens:,} tokens" if self._shown.target_tokens else ""
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
        page: The map, and what computes the effect of a compaction.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "context.tcss"]

    def __init__(self, page: ContextPage) -> None:
        super().__init__(can_choose=page.choice is not None)
        self._shown = page.shown
        self._load = page.load_preview

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


_NOTES = 0
"""The number of the first row; those of pieces begin with 1."""

_NAMES: dict[PieceMark, str] = {
    "keep": "kept by you",
    "always": "always kept",
    "drop": "dropped by you",
}
_MOST_LINES = 400
"""A longer piece is cut in the preview."""


class KeepingScreen(PickerScreen[Decision | int]):
    """Returns what was decided, for the compaction to be made; None if it was left.

    Args:
        load: Makes the proposal; asks the model, so it takes a while.
    """

    heading = "What the compaction keeps word for word"
    placeholder = "/ searches"
    has_preview = True
    column_titles = ("", "tokens")
    searches_at_once = False
    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "compact", "Compact"),
        Binding("k", "mark('keep')", "Keep"),
        Binding("a", "mark('always')", "Always keep"),
        Binding("d", "mark('drop')", "Drop"),
        Binding("slash", "search", "Search"),
    ]

    def __init__(self, load: Callable[[OnProgress], Awaitable[Proposal]]) -> None:
        super().__init__()
        self._propose = load
        self._proposal: Proposal | None = None
        self._marks: dict[int, PieceMark] = {}

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        return "k keep · a always keep · d drop · / find · enter compact · esc close"

    async def load_rows(self) -> Sequence[PickerRow[Decision | int]]:
        """The model's notes and all that can be kept, files first."""
        self._show_progress("reading the conversation", 0)
        try:
            self._proposal = await self._propose(self._show_progress)
        except AgentTuiError as error:
            self.say(safe_text(str(error), keep_newlines=False))
            return []
        self.say(self._totals_text())
        return self._all_rows()

    def _show_progress(self, phase: str, _chars: int) -> None:
        message = self.query_one("#picker-message", Static)
        message.update(f"{phase[:1].upper()}{phase[1:]}… esc stops")

    def _all_rows(self) -> Sequence[PickerRow[Decision | int]]:
        proposal = self._proposal
        assert proposal is not None
        rows: list[PickerRow[Decision | int]] = []
        if proposal.choice is not None:
            notes = Content(safe_text(proposal.choice.notes))
            rows.append(PickerRow(_NOTES, "the model's notes", ("written", ""), preview=notes))
        return [*rows, *(self._row(proposal, piece) for piece in proposal.ask.pieces)]

    def _row(self, proposal: Proposal, piece: Piece) -> PickerRow[Decision | int]:
        mark, place = self._marks.get(piece.number), proposal.place(piece, self._marks)
        named = "always kept" if piece.is_lasting else place
        if place == "kept" and (lines := proposal.lines_of_choice(piece)):
            named = f"kept {lines}"
        shown = "\n".join(piece.lines[:_MOST_LINES])
        span = f" {piece.first}-{piece.last}" if piece.path else ""
        return PickerRow(
            piece.number,
            safe_text(f"{piece.label}{span}", keep_newlines=False),
            (_NAMES[mark] if mark is not None else named, f"{piece.tokens:,}"),
            preview=Content(safe_text(shown)),
            is_dim=place == "goes",
        )

    def _totals_text(self) -> str:
        """How much is kept, and why no model chose, if so."""
        proposal = self._proposal
        assert proposal is not None
        kept, room = proposal.tokens_to_keep(self._marks), proposal.ask.budget.keep
        told = f"About {kept:,} of {room:,} tokens are kept word for word."
        if kept > room:
            told += " What was marked or chosen last may be cut."
        why = f" No model chose: {proposal.problem}." if proposal.problem else ""
        return safe_text(told + why, keep_newlines=False)

    def pick(self, row: PickerRow[Decision | int]) -> None:
        """Return from the search field to the rows."""
        self.set_focus(None)

    def action_mark(self, mark: PieceMark) -> None:
        """PieceMark the piece with the highlight, or take the mark back."""
        row, proposal = self.present_row, self._proposal
        if row is None or proposal is None or not isinstance(row.value, int) or not row.value:
            return
        number = row.value
        if self._marks.get(number) == mark:
            del self._marks[number]
        elif mark != "always" and proposal.ask.stays(proposal.ask.pieces[number - 1]):
            self.say("It is among the newest messages, which stay.")
            return
        else:
            self._marks[number] = mark
        self.show_rows(self._all_rows())
        self.say(self._totals_text())

    def action_compact(self) -> None:
        """Close with the decision."""
        if self._proposal is not None:
            self.dismiss(self._proposal.decide(self._marks))
