"""Screens of a compaction: a preview, and what leads to the choice of what it keeps."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.commands.core.front import Page
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.proposal import Decision, PieceMark, Proposal
from agent_tui.errors import AgentTuiError
from agent_tui.providers.client import OnProgress
from agent_tui.safe_text import safe_text
from agent_tui.ui.chat.lines_above_prompt import ActivityLine, ActivityState
from agent_tui.ui.parts import KeysLine
from agent_tui.ui.screens.modal import FollowUp, ReadingScreen, section_widgets
from agent_tui.ui.screens.picker import PickerRow, PickerScreen


class LeadingScreen(ReadingScreen):
    """A page about compactions from which one can go on to what a compaction keeps.

    Args:
        choose: Lets the user decide what is kept; None while the agent works.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("m", "choose", "Choose what is kept")]

    def __init__(self, choose: FollowUp | None) -> None:
        super().__init__()
        self._choose = choose

    @property
    def choose_hint(self) -> str:
        """The key, for the line of keys; empty if it does nothing."""
        return "m choose what is kept · " if self._choose is not None else ""

    def action_choose(self) -> None:
        """Close, and continue with the choice."""
        if self._choose is not None:
            self.dismiss(self._choose)


class PreviewScreen(LeadingScreen):
    """Counts while it is open already, then shows the outcome. Writes nothing.

    Args:
        title: Its heading while it counts.
        load: Computes the preview.
        choose: As for `LeadingScreen`.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = [
        "../../ui/screens/modal.tcss",
        "../../ui/screens/page.tcss",
        "preview.tcss",
    ]

    def __init__(
        self, title: str, load: Callable[[], Awaitable[Page]], choose: FollowUp | None
    ) -> None:
        super().__init__(choose)
        self._heading = title
        self._load = load

    def compose(self) -> ComposeResult:
        """The frame, with a line about the counting."""
        with VerticalScroll(id="page", classes="frame", can_focus=False):
            yield Static(self._heading, id="page-title", markup=False)
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
            page = await self._load()
        except AgentTuiError as error:
            found = [Static(safe_text(str(error)), classes="preview-note", markup=False)]
        else:
            found = list(section_widgets(page.sections))
        line = self.query_one(ActivityLine)
        await self.query_one("#page").mount_all(found, before=line)
        await line.remove()


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
        budget = proposal.ask.budget
        kept, room = proposal.tokens_to_keep(self._marks), budget.free - budget.notes
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
