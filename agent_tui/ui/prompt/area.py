"""The text field of the prompt: which keys write, which make a new line, which are offered."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events, getters
from textual.app import App
from textual.binding import BindingsMap, BindingType
from textual.events import Key
from textual.geometry import Region
from textual.keys import key_to_character
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea

from agent_tui.drafts.draft import DraftMark, mark_after, mark_before, marks_in
from agent_tui.key_actions import KEY_ACTIONS, KeyMap, keys_in_force
from agent_tui.ui.keys import AREA_BINDINGS, bind_keys

if TYPE_CHECKING:
    from agent_tui.ui.approval_panel import ApprovalPanel
    from agent_tui.ui.prompt.vim_keys import VimKeys

_FORWARDING_S = 0.005
"""How long keys that are there already may take to get here from the terminal."""
_PASTE_GAP_S = 0.02
"""Keys closer together than this are not typed: fingers need 30 ms, key repeat 25 and more."""


class RepeatedKey:
    """Holds repetitions of a key for a moment.

    They are dropped unless something else is typed within that moment: then they were writing.

    Args:
        write: Writes a letter.

    Attributes:
        within_s: How long that moment is, in seconds.
    """

    def __init__(self, write: Callable[[Key], None]) -> None:
        self.within_s = 1.0
        self._write = write
        self._key = ""
        self._until = 0.0
        self._held: list[Key] = []

    def begin(self, key: str) -> None:
        """`key` answered a question; empty: none did."""
        self._key, self._held = key, []
        self._until = time.monotonic() + self.within_s

    def holds(self, event: Key) -> bool:
        """Whether `event` is used up; if not, what was held stands in the prompt before it."""
        if self._key and event.key == self._key and event.time <= self._until:
            self._held.append(event)
            return True
        self.write_held()
        return False

    def write_held(self) -> None:
        """Write held repetitions as something else follows, unless they are too old."""
        held, self._held, self._key = self._held, [], ""
        for event in held if time.monotonic() <= self._until else ():
            self._write(event)


class PasteDetector:
    """Follows the keys as they come.

    Enter belongs to a paste if the keys around it came at once: some just before it and some
    waiting behind it, or lines of the same burst before it. The last Enter of one line alone
    sends, as that is also how scripts write into a terminal.

    Args:
        has_more: Whether further keys are waiting already; asked only within a burst.
    """

    def __init__(self, has_more: Callable[[], Awaitable[bool]]) -> None:
        self._has_more = has_more
        self._last_at = float("-inf")
        self._has_lines = False

    async def is_pasted(self, key: str, at: float) -> bool:
        """Whether `key`, which came at `at` (seconds), is text of a paste and no command."""
        is_burst = at - self._last_at <= _PASTE_GAP_S
        self._last_at = at
        if not is_burst:
            self._has_lines = False
        if not is_burst or key not in ("enter", "tab"):
            return False
        is_pasted = self._has_lines or await self._has_more()
        self._has_lines = self._has_lines or (is_pasted and key == "enter")
        return is_pasted


def _any_app() -> type[App[object]]:
    return App


class PromptArea(TextArea):
    """A text area in which Enter does not write.

    Args:
        take_key: Offered every key first; true if the key was used up.
        take_paste: Turns pasted text into what is inserted.
        placeholder: Shown while empty.

    Attributes:
        vim: The modes of vi, where they are wanted.
        repeated: What becomes of an answer that is pressed twice.
        early: Offered every key first while a question waits to take keys.
    """

    app = getters.app(_any_app)
    BINDINGS: ClassVar[list[BindingType]] = [*AREA_BINDINGS]

    def __init__(
        self,
        take_key: Callable[[str], bool],
        take_paste: Callable[[str], Awaitable[str]],
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
        self.vim: VimKeys | None = None
        self.early: ApprovalPanel | None = None
        self.repeated = RepeatedKey(self.write)
        self._keys_waiting = 0
        self._drawn_look: tuple[object, ...] | None = None
        self._burst = PasteDetector(self._has_keys_waiting)

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

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw, and put the terminal's own caret, where input methods open, at ours.

        Textual does the latter only when ours moves within the field, not with the field.
        """
        if self.has_focus and self.screen.is_current:
            self._watch_scroll_y()  # as after a scroll
        look = (self._theme, self.app.theme, self.rich_style)
        if look != self._drawn_look:
            self._theme.apply_css(self)
            self._drawn_look = look
        # `TextArea.render_lines` would apply the CSS for every letter: a third of drawing it.
        return super(TextArea, self).render_lines(crop)

    def notify_style_update(self) -> None:
        """Apply the CSS again before the next drawing."""
        self._drawn_look = None
        super().notify_style_update()

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

    @property
    def mark_at_cursor(self) -> DraftMark | None:
        """The mark that the cursor is in or beside."""
        row, column = self.cursor_location
        marks = marks_in(self.document.get_line(row))
        return next((mark for mark in marks if mark.start <= column <= mark.end), None)

    def post_message(self, message: Message) -> bool:
        """Post a message; keys are counted, so that waiting ones are known."""
        if isinstance(message, events.Key):
            self._keys_waiting += 1
        return super().post_message(message)

    async def _has_keys_waiting(self) -> bool:
        await asyncio.sleep(_FORWARDING_S)
        return self._keys_waiting > 0

    async def _on_key(self, event: events.Key) -> None:
        self._keys_waiting -= 1
        if await self._burst.is_pasted(event.key, event.time):
            self._write_held()
            self.insert("\t" if event.key == "tab" else "\n")
        elif self._is_held(event):
            pass
        elif not (self.vim and self.vim.take(event)) and not self._take_key(event.key):
            if keys_in_force().action(event.key) == "newline":
                self.insert("\n")
            elif not await self._edits(event.key):
                return
        event.stop()
        event.prevent_default()

    def writes(self, key: str) -> bool:
        """Whether `key` writes a letter here and is bound to nothing."""
        is_bound = key in self._bindings.key_to_bindings
        return not is_bound and self.check_consume_key(key, key_to_character(key))

    def note_answer(self, key: str) -> None:
        """Note that `key` answered a question: a repetition is neither text nor a command."""
        self.repeated.begin(key)

    def deletes(self, key: str) -> bool:
        """Whether `key` deletes something of the text."""
        bindings = self._bindings.key_to_bindings.get(key, ())
        return any(binding.action.startswith("delete_") for binding in bindings)

    async def take(self, event: events.Key) -> None:
        """Handle a key pressed elsewhere: write a letter, or delete."""
        if self._is_held(event):
            return
        if event.is_printable:
            self.write(event)
        elif not (self.vim and self.vim.take(event)):
            await self._edits(event.key)

    def write(self, event: events.Key) -> None:
        """Write a letter that was held back."""
        if event.character and not (self.vim and self.vim.take(event)):
            self.replace(event.character, *self.selection, maintain_selection_offset=False)

    def _is_held(self, event: events.Key) -> bool:
        early = self.early
        return self.repeated.holds(event) or (early is not None and early.holds(event))

    def _write_held(self) -> None:
        self.repeated.write_held()
        if self.early is not None:
            self.early.write_held()

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
        self._write_held()
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
