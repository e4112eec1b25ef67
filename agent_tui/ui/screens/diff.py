"""The changes in the conversation: a list, and the highlighted item's diff beside it."""

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.text import Text
from textual import getters
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.commands.diff import DiffItem, DiffPage
from agent_tui.safe_text import safe_text
from agent_tui.ui.diff_view import diff_lines, parse_diff
from agent_tui.ui.parts import KeysLine, any_app
from agent_tui.ui.screens.modal import ReadingScreen
from agent_tui.ui.screens.picker import PickerRow, PickerScreen
from agent_tui.ui.styled_lines import Line, wrap
from agent_tui.ui.theme.palette import Palette, palette_of
from agent_tui.ui.transcript.code import CodePainter

_MOST_ROWS = 5_000
"""Drawn of one diff; the rest is counted."""


def change_text(change: DiffItem, width: int, palette: Palette) -> Text:
    """A change's notes and its diff, in rows of `width` cells."""
    lines: list[Line] = []
    for note in change.notes:
        lines += wrap([Segment(safe_text(note, keep_newlines=False), palette.muted)], width)
    rows = parse_diff(change.diff)
    if sum(row.kind == "file" for row in rows) == 1:
        rows = tuple(row for row in rows if row.kind != "file")
    if change.diff:
        lines += [
            Line(()),
            *diff_lines(rows[:_MOST_ROWS], width, palette, CodePainter(palette).inks),
        ]
    if (more := len(rows) - _MOST_ROWS) > 0:
        lines.append(Line((Segment(f"… {more:,} more lines", palette.muted),)))
    text = Text(no_wrap=True, end="")
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        for segment in line.segments:
            text.append(segment.text, segment.style)
    return text


class DiffScreen(PickerScreen[DiffItem]):
    """Returns nothing of use: what is picked is shown whole.

    Args:
        page: What changed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "turn_over", "Files or messages", priority=True),
        Binding("ctrl+d", "scroll(10)", "Scroll the diff", show=False, priority=True),
        Binding("ctrl+u", "scroll(-10)", "Scroll the diff", show=False, priority=True),
    ]
    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "picker.tcss", "diff.tcss"]
    app = getters.app(any_app)
    heading = "What changed"
    placeholder = "Type to search files and changes"
    nothing = "No changes."
    column_titles = ("", "")
    has_preview = True

    def __init__(self, page: DiffPage) -> None:
        super().__init__()
        self._page = page
        self._is_by_turn = False

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        other = "files" if self._is_by_turn else "messages"
        return f"↑↓ move · ctrl+d/u scroll · enter full view · ctrl+t by {other} · esc close"

    async def load_rows(self) -> Sequence[PickerRow[DiffItem]]:
        """Files in the order they were changed, or messages."""
        changes = self._page.by_turn if self._is_by_turn else self._page.by_file
        return [_row(change) for change in changes]

    def row_highlighted(self, row: PickerRow[DiffItem]) -> None:
        """Show its diff beside the list."""
        self.when_drawn(self._show_diff, row.value)

    def _show_diff(self, change: DiffItem) -> None:
        preview = self.query_one("#picker-preview")
        if (width := preview.scrollable_content_region.width) > 0:
            text = change_text(change, width, palette_of(self.app))
            self.query_one("#picker-preview-text", Static).update(text)

    def pick(self, row: PickerRow[DiffItem]) -> None:
        """Show it over the full width."""
        self.app.push_screen(ChangeScreen(row.value))

    def action_turn_over(self) -> None:
        """Switch between changes by file and by message."""
        self._is_by_turn = not self._is_by_turn
        self.query_one("#picker-keys", KeysLine).update(self.keys_hint)
        self.run_worker(self._load, exclusive=True)

    def action_scroll(self, step: int) -> None:
        """Scroll the diff."""
        self.query_one("#picker-preview").scroll_relative(y=step, animate=False)


class ChangeScreen(ReadingScreen):
    """One change over the whole width.

    Args:
        change: What is shown.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "diff.tcss"]
    app = getters.app(any_app)

    def __init__(self, change: DiffItem) -> None:
        super().__init__()
        self._change = change

    def compose(self) -> ComposeResult:
        """Title, diff, keys."""
        with VerticalScroll(id="page", classes="frame", can_focus=False):
            title = safe_text(self._change.title, keep_newlines=False)
            yield Static(title, id="page-title", markup=False)
            yield Static(id="change-text", markup=False)
            yield KeysLine("↑↓ scroll · esc close", id="page-keys")

    def on_resize(self) -> None:
        """Draw for this width."""
        self.when_drawn(self._draw)

    def _draw(self) -> None:
        width = self.query_one("#page").scrollable_content_region.width
        if width > 0:
            text = change_text(self._change, width, palette_of(self.app))
            self.query_one("#change-text", Static).update(text)


def _row(change: DiffItem) -> PickerRow[DiffItem]:
    added, removed = change.counts
    counts = (f"+{added}", f"-{removed}") if change.diff else ("", "")
    return PickerRow(change, change.title, counts, search=change.diff, is_dim=not change.diff)
