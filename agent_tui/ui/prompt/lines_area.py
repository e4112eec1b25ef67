"""A text field of several lines: pastes stay text, large ones are marks, and Enter is no letter."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import events, getters
from textual.app import App
from textual.binding import BindingsMap, BindingType
from textual.widgets import TextArea

from agent_tui.drafts.draft import DraftMark, mark_after, mark_before, marks_in
from agent_tui.key_actions import KEY_ACTIONS, KeyMap, keys_in_force
from agent_tui.ui.keys import AREA_BINDINGS, bind_keys


def _any_app() -> type[App[object]]:
    return App


class LinesArea(TextArea):
    """A text area for keys and pastes; `take_key` says what Enter does.

    Args:
        take_paste: Turns pasted text into what is inserted.
        placeholder: Shown while empty.
    """

    app = getters.app(_any_app)
    BINDINGS: ClassVar[list[BindingType]] = [*AREA_BINDINGS]

    def __init__(self, take_paste: Callable[[str], Awaitable[str]], placeholder: str = "") -> None:
        super().__init__(
            compact=True,
            soft_wrap=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
            placeholder=placeholder,
            tab_behavior="focus",
        )
        self._take_paste = take_paste

    @property
    def text_before_cursor(self) -> str:
        """The cursor's line up to the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    @property
    def mark_at_cursor(self) -> DraftMark | None:
        """The mark that the cursor is in or beside."""
        row, column = self.cursor_location
        marks = marks_in(self.document.get_line(row))
        return next((mark for mark in marks if mark.start <= column <= mark.end), None)

    def use_keys(self, keys: KeyMap) -> None:
        """Leave to others the keys that `keys` gives them, though text fields have them."""
        taken = {key for name in KEY_ACTIONS for key in keys.keys(name)}
        usual = BindingsMap(TextArea.BINDINGS).key_to_bindings
        of_text_fields = {key: found for key, found in usual.items() if key not in taken}
        own = BindingsMap(bind_keys(AREA_BINDINGS, keys)).key_to_bindings
        self._bindings = BindingsMap.from_keys({**of_text_fields, **own})

    def replace_before_cursor(self, length: int, text: str) -> None:
        """Replace so many characters before the cursor, on its line, with `text`."""
        row, column = self.cursor_location
        self.replace(text, (row, column - length), (row, column), maintain_selection_offset=False)

    async def _on_hide(self, event: events.Hide) -> None:
        # A terminal with no row left for the field hides it. Textual would take the focus away,
        # and keys would go nowhere once there is room again.
        event.prevent_default()

    async def _on_key(self, event: events.Key) -> None:
        if await self.take_key(event):
            event.stop()
            event.prevent_default()

    async def take_key(self, event: events.Key) -> bool:
        """Carry out a key; false leaves it to the text field and the app."""
        if keys_in_force().action(event.key) == "newline":
            self.insert("\n")
            return True
        return await self._edits(event.key)

    def begin_paste(self) -> None:
        """Prepare for pasted text."""

    async def _edits(self, key: str) -> bool:
        """Run what `key` is bound to here, if anything.

        Textual would run it when the key has come up to the app, and by then the letters that were
        typed behind it would stand here: Ctrl+U would take them away.
        """
        for binding in self._bindings.key_to_bindings.get(key, ()):
            if await self.app.run_action(binding.action, self):
                return True
        return False

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.begin_paste()
        text = await self._take_paste(event.text)
        start, end = self.selection
        self.replace(text, start, end, maintain_selection_offset=False)

    def action_delete_left(self) -> None:
        """Backspace; deletes a mark as a whole."""
        if not self._delete_mark_before():
            super().action_delete_left()

    def action_delete_word_left(self) -> None:
        """Ctrl+W; deletes a mark as a whole."""
        if not self._delete_mark_before():
            super().action_delete_word_left()

    def action_delete_right(self) -> None:
        """Delete; deletes a mark as a whole."""
        row, column = self.cursor_location
        length = mark_after(self.document.get_line(row)[column:]) if self.selection.is_empty else 0
        if length:
            self.replace("", (row, column), (row, column + length))
        else:
            super().action_delete_right()

    def _delete_mark_before(self) -> bool:
        length = mark_before(self.text_before_cursor) if self.selection.is_empty else 0
        if length:
            self.replace_before_cursor(length, "")
        return bool(length)
