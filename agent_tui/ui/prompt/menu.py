"""The list of completions, laid over the chat just above the prompt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.geometry import Offset
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from agent_tui.safe_text import safe_text

if TYPE_CHECKING:  # the menu is part of the first paint, what completes is not
    from agent_tui.ui.prompt.completion import MenuItem

_MAX_ROWS = 8
_BORDER_ROWS = 2
_NARROW_COLUMNS = 60


class CompletionMenu(OptionList, can_focus=False):
    """Shows possible completions; the prompt moves the highlight."""

    @dataclass
    class Chosen(Message):
        """An item was clicked."""

        item: "MenuItem"

    def __init__(self) -> None:
        super().__init__(markup=False, compact=True)
        self._items: tuple[MenuItem, ...] = ()
        self.was_moved = False
        """Whether the user moved the highlight since the menu opened."""
        self.display = False

    @property
    def is_open(self) -> bool:
        """Whether the menu is on the screen."""
        return bool(self.display)

    @property
    def items(self) -> "tuple[MenuItem, ...]":
        """What is offered, best first."""
        return self._items

    @property
    def current(self) -> "MenuItem | None":
        """The highlighted item of an open menu."""
        if not self.is_open or self.highlighted is None:
            return None
        return self._items[self.highlighted] if self.highlighted < len(self._items) else None

    def open(self, items: "Sequence[MenuItem]", above: int, width: int) -> None:
        """Show `items` with the last row just above screen row `above`."""
        if tuple(items) != self._items or not self.is_open:
            self._items = tuple(items)
            self.was_moved = False
            self.set_options(Option(row) for row in _rows(self._items, width - 6))
            self.highlighted = 0
        rows = min(len(self._items), _MAX_ROWS, max(above - _BORDER_ROWS, 1))
        self.styles.height = rows + _BORDER_ROWS
        self.absolute_offset = Offset(0, max(above - rows - _BORDER_ROWS, 0))
        self.display = True
        self.refresh(layout=True)

    def close(self) -> None:
        """Hide the menu."""
        self._items = ()
        self.display = False

    def move(self, step: int) -> None:
        """Move the highlight, wrapping at the ends."""
        self.was_moved = True
        if self._items:
            self.highlighted = ((self.highlighted or 0) + step) % len(self._items)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click chooses."""
        event.stop()
        self.post_message(self.Chosen(self._items[event.option_index]))


def _rows(items: "Sequence[MenuItem]", width: int) -> list[Content]:
    """Two aligned columns; hints give way to descriptions, and these on a narrow screen."""
    heads = [_head(item) for item in items]
    longest = max((head.cell_length for head in heads), default=0)
    label = max((Content(safe_text(item.label)).cell_length for item in items), default=0)
    column = min(longest, max(label, width // 3), max(width // 2, 12))
    rows: list[Content] = []
    for item, head in zip(items, heads, strict=True):
        if not item.description or width < _NARROW_COLUMNS // 2:
            rows.append(head.truncate(width, ellipsis=True))
            continue
        first = head.truncate(column, ellipsis=True)
        gap = " " * (column - first.cell_length + 2)
        rest = Content.assemble((safe_text(item.description), "$foreground-muted"))
        room = max(width - column - 2, 4)
        rows.append(Content.assemble(first, gap, rest.truncate(room, ellipsis=True)))
    return rows


def _head(item: "MenuItem") -> Content:
    label = Content(safe_text(item.label))
    for offset in item.matched:
        label = label.stylize("bold $match", offset, offset + 1)
    if not item.hint:
        return label
    return Content.assemble(label, " ", (safe_text(item.hint), "$foreground-muted italic"))
