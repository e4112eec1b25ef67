"""A field for what the user says about something: a reason, an answer. It takes several lines."""

from dataclasses import dataclass

from textual import events
from textual.message import Message

from agent_tui.drafts.draft import Draft
from agent_tui.key_actions import keys_in_force
from agent_tui.ui.prompt.attachments import DraftAttachments
from agent_tui.ui.prompt.lines_area import LinesArea


def new_line_hint() -> str:
    """A new-line key that every terminal sends, if there is one."""
    keys = keys_in_force()
    if "ctrl+j" in keys.keys("newline"):
        return "ctrl+j new line"
    return keys.hint("newline", "new line")


class LinesField(LinesArea):
    """Grows with its lines; Enter sends, and large pastes are marks as in the prompt.

    Args:
        text: The initial text.
        placeholder: Shown while empty.
        id: What the widget is found by.
        is_selected: Whether the first key replaces the initial text.
        is_kept: Whether what is written is kept with the unsent draft.
    """

    @dataclass
    class Submitted(Message):
        """Enter was pressed."""

        field: "LinesField"
        text: str

    def __init__(
        self,
        text: str = "",
        *,
        placeholder: str = "",
        id: str,
        is_selected: bool = False,
        is_kept: bool = True,
    ) -> None:
        self._attachments = DraftAttachments(lambda _reason: None)
        super().__init__(self._paste, placeholder)
        self.id = id
        self._initial = text
        self._is_selected = is_selected
        self._is_kept = is_kept
        self.load(Draft(text))

    @property
    def draft(self) -> Draft:
        """What is written, with its pastes."""
        return self._attachments.draft(self.text)

    @property
    def unsent(self) -> Draft:
        """What to keep until it is sent; empty if nothing was written."""
        is_written = self._is_kept and self.text != self._initial
        return self.draft.trim() if is_written else Draft()

    def load(self, draft: Draft) -> None:
        """Write `draft` in place of what is there, with the cursor after it."""
        self._attachments.load(draft)
        self.load_text(draft.text)
        self.move_cursor(self.document.end)

    def on_mount(self) -> None:
        """Leave the keys of the app to it."""
        self.use_keys(keys_in_force())

    def on_resize(self) -> None:
        """Stay in sight with the cursor as it grows."""
        if self.has_focus:
            self.call_after_refresh(self.scroll_visible, animate=False)

    def on_unmount(self) -> None:
        """Tell the app that what was written here was sent or dropped; nothing passes it on now."""
        if self._is_kept and self.unsent.is_empty:
            self.app.post_message(self.Changed(self))

    def on_focus(self) -> None:
        """Select the initial text if it is to be replaced."""
        if self._is_selected:
            self.select_all()

    async def take_key(self, event: events.Key) -> bool:
        """Send, begin a new line, open a paste, or edit."""
        match keys_in_force().action(event.key):
            case "submit" if self.text_before_cursor.endswith("\\"):
                self.replace_before_cursor(1, "\n")
            case "submit":
                self.post_message(self.Submitted(self, self.draft.sent_text))
            case "toggle_details" if self._open_paste():
                pass
            case _:
                return await super().take_key(event)
        return True

    def _open_paste(self) -> bool:
        """Replace the mark at the cursor with its pasted text; false if there is none."""
        mark = self.mark_at_cursor
        text = self._attachments.paste(mark.number) if mark and mark.kind == "paste" else None
        if mark is None or text is None:
            return False
        row, _ = self.cursor_location
        self.replace(text, (row, mark.start), (row, mark.end), maintain_selection_offset=False)
        return True

    async def _paste(self, text: str) -> str:
        return await self._attachments.take_paste(text, None)
