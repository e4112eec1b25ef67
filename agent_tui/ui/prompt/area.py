"""The text field of the prompt: which keys write, which make a new line, which are offered."""

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from textual import events
from textual.events import Key
from textual.geometry import Region
from textual.keys import key_to_character
from textual.strip import Strip
from textual.widgets import TextArea

from agent_tui.ui.prompt.lines_area import LinesArea

if TYPE_CHECKING:
    from agent_tui.ui.prompt.modes import KeyModes


BURST_S = 0.2
"""Letters that follow one another faster are the beginning of a word: 60 words a minute are five
letters a second."""


class EarlyAnswers(Protocol):
    """Holds back keys that may answer a question too early; `ApprovalPanel` implements it."""

    def holds(self, event: Key) -> bool:
        """Whether the key is used up."""
        ...

    def write_held(self) -> None:
        """Write the held keys into the prompt."""
        ...


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

    @property
    def is_recent(self) -> bool:
        """Whether that moment has not passed yet."""
        return time.monotonic() <= self._until

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
        for event in held if self.is_recent else ():
            self._write(event)


class PromptArea(LinesArea):
    """A text area in which Enter does not write.

    Args:
        take_key: Offered every key first; true if the key was used up.
        take_paste: Turns pasted text into what is inserted.
        placeholder: Shown while empty.

    Attributes:
        modes: Take keys first, if the settings want them.
        repeated: What becomes of an answer that is pressed twice.
        early: Offered every key first while a question waits to take keys.
        burst_s: Seconds within which a letter behind an answer makes both of them text.
    """

    def __init__(
        self,
        take_key: Callable[[str], bool],
        take_paste: Callable[[str], Awaitable[str]],
        placeholder: str,
    ) -> None:
        super().__init__(take_paste, placeholder)
        self._take_key = take_key
        self.modes: KeyModes | None = None
        self.early: EarlyAnswers | None = None
        self.burst_s = BURST_S
        self.repeated = RepeatedKey(self.write)
        self._may_open_field = False
        self._drawn_look: tuple[object, ...] | None = None

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

    async def take_key(self, event: events.Key) -> bool:
        """Hold, write or carry out a key; false leaves it to the text field and the app."""
        if self._is_held(event) or (self.modes and self.modes.take(event)):
            return True
        return self._take_key(event.key) or await super().take_key(event)

    def begin_paste(self) -> None:
        """Write held keys, as a paste follows."""
        self._write_held()

    def writes(self, key: str) -> bool:
        """Whether `key` writes a letter here and is bound to nothing."""
        is_bound = key in self._bindings.key_to_bindings
        return not is_bound and self.check_consume_key(key, key_to_character(key))

    def note_answer(self, key: str, *, may_open_field: bool = False) -> None:
        """Note that `key` answered a question: a repetition is neither text nor a command.

        `may_open_field`: another question may follow at once, one with a field.
        """
        self.repeated.begin(key)
        self._may_open_field = may_open_field

    @property
    def may_field_open(self) -> bool:
        """Whether a question was answered a moment ago, after which a field may open."""
        return self._may_open_field and self.repeated.is_recent

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
        elif not (self.modes and self.modes.take(event)):
            await self._edits(event.key)

    def write(self, event: events.Key) -> None:
        """Write a letter that was held back."""
        if event.character and not (self.modes and self.modes.take(event)):
            self.replace(event.character, *self.selection, maintain_selection_offset=False)

    def _is_held(self, event: events.Key) -> bool:
        early = self.early
        return self.repeated.holds(event) or (early is not None and early.holds(event))

    def _write_held(self) -> None:
        self.repeated.write_held()
        if self.early is not None:
            self.early.write_held()
