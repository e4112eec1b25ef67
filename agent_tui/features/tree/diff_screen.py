"""What going back would change: a list of files, and the highlighted one's diff beside it."""

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

from agent_tui.features.tree.difference import FileDifference
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


def change_text(change: FileDifference, width: int, palette: Palette) -> Text:
    """A change's notes and its diff, in rows of `width` cells."""
    lines: list[Line] = []
    if change.note:
        lines += wrap([Segment(safe_text(change.note, keep_newlines=False), palette.muted)], width)
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


class DiffScreen(PickerScreen[FileDifference]):
    """Returns nothing of use: what is picked is shown whole.

    Args:
        files: What would change.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+d", "scroll(10)", "Scroll the diff", show=False, priority=True),
        Binding("ctrl+u", "scroll(-10)", "Scroll the diff", show=False, priority=True),
    ]
    CSS_PATH: ClassVar[CSSPathType | None] = [
        "../../ui/screens/modal.tcss",
        "../../ui/screens/picker.tcss",
        "diff.tcss",
    ]
    app = getters.app(any_app)
    heading = "What changed"
    placeholder = "Type to search files and changes"
    nothing = "No changes."
    column_titles = ("", "")
    has_preview = True

    def __init__(self, files: Sequence[FileDifference]) -> None:
        super().__init__()
        self._files = files

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        return "↑↓ move · ctrl+d/u scroll · enter full view · esc close"

    async def load_rows(self) -> Sequence[PickerRow[FileDifference]]:
        """A row for each file."""
        return [_row(change) for change in self._files]

    def row_highlighted(self, row: PickerRow[FileDifference]) -> None:
        """Show its diff beside the list."""
        self.when_drawn(self._show_diff, row.value)

    def _show_diff(self, change: FileDifference) -> None:
        preview = self.query_one("#picker-preview")
        if (width := preview.scrollable_content_region.width) > 0:
            text = change_text(change, width, palette_of(self.app))
            self.query_one("#picker-preview-text", Static).update(text)

    def pick(self, row: PickerRow[FileDifference]) -> None:
        """Show it over the full width."""
        self.app.push_screen(ChangeScreen(row.value))

    def action_scroll(self, step: int) -> None:
        """Scroll the diff."""
        self.query_one("#picker-preview").scroll_relative(y=step, animate=False)


class ChangeScreen(ReadingScreen):
    """One change over the whole width.

    Args:
        change: What is shown.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = [
        "../../ui/screens/modal.tcss",
        "../../ui/screens/page.tcss",
        "diff.tcss",
    ]
    app = getters.app(any_app)

    def __init__(self, change: FileDifference) -> None:
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


def _row(change: FileDifference) -> PickerRow[FileDifference]:
    added, removed = change.counts
    counts = (f"+{added}", f"-{removed}") if change.diff else ("", "")
    return PickerRow(change, change.title, counts, search=change.diff, is_dim=not change.diff)
