"""The text field of the prompt: which keys write, which make a new line, which are offered."""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from agent_tui.ui.prompt.pastes import mark_before

NEW_LINE_KEYS = frozenset(
    {"shift+enter", "ctrl+j", "alt+enter", "ctrl+enter", "shift+\r", "ctrl+\r"}
)
"""tmux sends shift+enter as ``shift+\\r``; terminals without the kitty protocol only ctrl+j."""


class PromptArea(TextArea):
    """A text area in which Enter does not write.

    Args:
        take_key: Offered every key first; true if the key was used up.
        take_paste: Turns pasted text into what is inserted.
        placeholder: Shown while empty.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+underscore,super+z", "undo", "Undo", show=False),
        Binding("alt+b", "cursor_word_left", "Word left", show=False),
        Binding("alt+f", "cursor_word_right", "Word right", show=False),
    ]

    def __init__(
        self,
        take_key: Callable[[str], bool],
        take_paste: Callable[[str], str],
        placeholder: str,
    ) -> None:
        super().__init__(
            compact=True,
            soft_wrap=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
            placeholder=placeholder,
            tab_behavior="focus",
        )
        self._take_key = take_key
        self._take_paste = take_paste

    @property
    def text_before_cursor(self) -> str:
        """The cursor's line up to the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    @property
    def is_on_first_row(self) -> bool:
        """Whether there is no row above the cursor, wrapped ones counted."""
        return self.navigator.is_first_wrapped_line(self.cursor_location)

    @property
    def is_on_last_row(self) -> bool:
        """Whether there is no row below the cursor, wrapped ones counted."""
        return self.navigator.is_last_wrapped_line(self.cursor_location)

    def replace_before_cursor(self, length: int, text: str) -> None:
        """Replace so many characters before the cursor, on its line, with `text`."""
        row, column = self.cursor_location
        self.replace(text, (row, column - length), (row, column), maintain_selection_offset=False)

    async def _on_key(self, event: events.Key) -> None:
        if not self._take_key(event.key):
            if event.key not in NEW_LINE_KEYS:
                return
            self.insert("\n")
        event.stop()
        event.prevent_default()

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        start, end = self.selection
        self.replace(self._take_paste(event.text), start, end, maintain_selection_offset=False)

    def action_delete_left(self) -> None:
        """Backspace; the mark of a paste goes as a whole."""
        length = mark_before(self.text_before_cursor) if self.selection.is_empty else 0
        if length:
            self.replace_before_cursor(length, "")
        else:
            super().action_delete_left()
