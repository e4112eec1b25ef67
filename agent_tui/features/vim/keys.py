"""Passes the keys of the prompt's text field to `Vim`, and shows the result."""

from collections.abc import Callable

from textual.events import Key
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from agent_tui.features.vim.editor import Vim, Wish
from agent_tui.features.vim.motions import Buffer, line_start


class VimKeys:
    """The modes of vi in a text field.

    Args:
        area: The field.
        told: Called after each key that was used; with what is wished for besides.
    """

    def __init__(self, area: TextArea, told: Callable[[Wish], None]) -> None:
        self._area = area
        self._told = told
        self._vim = Vim()
        self._cursor = 0
        self._selected = area.selection
        self.begin(is_writing=True)

    @property
    def is_writing(self) -> bool:
        """Whether keys write text."""
        return self._vim.is_writing

    @property
    def title(self) -> str:
        """The mode, and the typed part of an incomplete command."""
        return f"{self._vim.mode} {self._vim.pending}".rstrip()

    def begin(self, *, is_writing: bool = False) -> None:
        """Switch to another text, whose past cannot be undone."""
        buffer = self._buffer()
        self._vim.begin(buffer, "insert" if is_writing else None)
        if not self.is_writing:
            self._show(buffer, buffer.at(buffer.cursor))

    def take(self, event: Key) -> bool:
        """Handle a key; false leaves it to the text field."""
        character = event.character if event.is_printable else None
        buffer = self._buffer()
        if character == "?" and not buffer.text:
            return False  # the help
        made = self._vim.press(character or event.key, buffer)
        if made is None:
            return character is not None and not self.is_writing
        self._show(buffer, made)
        self._told(self._vim.wish)
        return True

    def _buffer(self) -> Buffer:
        area = self._area
        is_visual = self._vim.mode.startswith("visual")
        if is_visual and area.selection == self._selected:
            return Buffer(area.text, self._cursor)
        if is_visual:  # the mouse selected something else
            self._vim.mode = "normal"
        return Buffer(area.text, _offset(area.text, area.cursor_location))

    def _show(self, before: Buffer, now: Buffer) -> None:
        area = self._area
        if before.text != now.text:
            start, end, new = _difference(before.text, now.text)
            ends = _location(before.text, start), _location(before.text, end)
            area.replace(new, *ends, maintain_selection_offset=False)
        self._cursor = now.cursor
        if self._vim.mode.startswith("visual"):
            extent = self._vim.selection(now)
            ends = _location(now.text, extent.start), _location(now.text, extent.end)
            is_backwards = now.cursor < self._vim.anchor
            area.selection = Selection(*reversed(ends)) if is_backwards else Selection(*ends)
        else:
            area.move_cursor(_location(now.text, now.cursor))
        self._selected = area.selection


def _offset(text: str, location: tuple[int, int]) -> int:
    row, column = location
    return sum(len(line) + 1 for line in text.split("\n")[:row]) + column


def _location(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at), at - line_start(text, at)


def _difference(before: str, now: str) -> tuple[int, int, str]:
    """The change from `before` to `now`: start and end in `before`, and the new text."""
    shorter = min(len(before), len(now))
    start = next((at for at in range(shorter) if before[at] != now[at]), shorter)
    rest = shorter - start
    same = next((at for at in range(rest) if before[-1 - at] != now[-1 - at]), rest)
    return start, len(before) - same, now[start : len(now) - same]
