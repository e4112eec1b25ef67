"""The rows of the tree on the screen; only those in sight are drawn, however many there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from agent_tui.safe_text import safe_text
from agent_tui.sessions.lineage.message_tree import RowKind, TreeRow
from agent_tui.sessions.replay.marks import Mark

_SIGNS: dict[RowKind, tuple[str, str]] = {
    "person": ("›", "$primary"),
    "command": ("!", "$text-warning"),
    "reply": (" ", ""),
    "result": ("↳", "$foreground-disabled"),
    "compaction": ("≡", "$text-accent"),
    "branch summary": ("≡", "$text-accent"),
    "note": ("i", "$text-accent"),
}
"""What stands before the text, and its colour."""

MARK_NAMES: dict[Mark, str] = {"keep": "kept", "pin": "always kept", "drop": "left out"}
_HERE = "  here"


class TreeList(ScrollView, can_focus=False):
    """A list with one current row, moved from outside."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tree-list--current"}

    class Moved(Message):
        """Another row is the current one."""

    @dataclass
    class Clicked(Message):
        """The current row was clicked on."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[TreeRow] = ()
        self._current = 0

    @property
    def rows(self) -> Sequence[TreeRow]:
        """What is shown."""
        return self._rows

    @property
    def current(self) -> TreeRow | None:
        """The current row; None if there are no rows."""
        return self._rows[self._current] if self._rows else None

    def show(self, rows: Sequence[TreeRow], current: int) -> None:
        """Show other rows, with the one at the index `current` in sight."""
        self._rows = rows
        self.virtual_size = Size(0, len(rows))
        self._current = -1
        self.move_to(current)
        self.refresh()

    def move(self, step: int) -> None:
        """Go `step` rows down."""
        self.move_to(self._current + step)

    def move_to(self, index: int) -> None:
        """Make the row at `index` the current one, or the nearest there is."""
        index = max(min(index, len(self._rows) - 1), 0)
        if index != self._current:
            self._current = index
            self._scroll_to_current()
            self.refresh()
            self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Keep the current row in sight."""
        self._scroll_to_current()

    def on_click(self, event: events.Click) -> None:
        """Make a row the current one; a click on that picks it."""
        index = round(self.scroll_offset.y) + event.y
        if index == self._current and self._rows:
            self.post_message(self.Clicked())
        elif index < len(self._rows):
            self.move_to(index)

    def render_line(self, y: int) -> Strip:
        """The row at `y` of the screen."""
        index = round(self.scroll_offset.y) + y
        width = self.scrollable_content_region.width
        if not 0 <= index < len(self._rows) or width <= 0:
            return Strip.blank(width, self.rich_style)
        is_current = index == self._current
        style = self.get_visual_style("tree-list--current") if is_current else self.visual_style
        content = row_content(self._rows[index], width)
        (strip,) = Visual.to_strips(self, content, width, 1, style, pad=True)
        return strip

    def _scroll_to_current(self) -> None:
        height = self.scrollable_content_region.height
        if height > 0:
            region = Region(0, self._current, 1, 1)
            self.scroll_to_region(region, animate=False, force=True, immediate=True)


def row_content(row: TreeRow, width: int) -> Content:
    """One row, exactly `width` cells wide."""
    mark, mark_style = ("•", "$primary") if row.is_on_path else (" ", "")
    sign, sign_style = _SIGNS[row.kind]
    text_style = "$foreground" if row.is_on_path else "$foreground-muted"
    if row.kind not in ("person", "command"):
        text_style = "$foreground-muted"
    label = safe_text(row.label, keep_newlines=False)
    left = Content.assemble(
        (f"{mark} ", mark_style),
        (row.guide, "$foreground-disabled"),
        (f"{sign} ", sign_style),
        (f"[{label}] " if label else "", "bold $text-success"),
        (f"({MARK_NAMES[row.mark]}) " if row.mark else "", "$text-warning"),
        (safe_text(row.title, keep_newlines=False), text_style),
    )
    end = Content.assemble((_HERE, "$foreground-muted")) if row.is_here else Content("")
    room = max(width - end.cell_length, 1)
    return Content.assemble(left.truncate(room, ellipsis=True, pad=True), end)
