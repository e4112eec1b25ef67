"""The prompt widget: text field, history, completion menu and pastes put together."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static, TextArea

from agent_tui.drafts.draft import Draft, DraftMark, join_drafts
from agent_tui.key_actions import keys_in_force
from agent_tui.paths import cache_folder
from agent_tui.ui.prompt.area import PromptArea
from agent_tui.ui.prompt.attachments import DraftAttachments, is_image_name, report_length
from agent_tui.ui.prompt.menu import CompletionMenu

if TYPE_CHECKING:  # these come after the first paint, see `attach` and `use_modes`
    from agent_tui.config import Settings
    from agent_tui.drafts.history import HistoryWalk
    from agent_tui.ui.prompt.completion import Completer, Items, MenuItem, PromptSources, Query
    from agent_tui.ui.prompt.modes import PromptModes, Walk

_OPENING = tuple("([{\"'`")
"""Behind these, a mention is followed by what closes them and not by a blank."""
_MOST_OPENED_CHARS = 100_000
"""A longer paste is not written out in the prompt."""
_UNDO = "/undo"
_PLACEHOLDER = "Ask anything · / commands · @ files · ! shell"


class Prompt(Vertical):
    """The widget that the user types in.

    Attributes:
        changed_at: When the text changed last, in monotonic seconds.
    """

    @dataclass
    class Submitted(Message):
        """Enter was pressed on something that can be dispatched; the prompt is empty again."""

        draft: Draft

    @dataclass
    class Refused(Message):
        """A draft cannot be used, such as an unknown command; it stays in the prompt."""

        reason: str

    @dataclass
    class HistoryWanted(Message):
        """An earlier draft shall be searched among `drafts`, oldest first."""

        drafts: Sequence[Draft]

    class NoImage(Message):
        """Ctrl+V, and there is no image on the clipboard."""

    class HelpWanted(Message):
        """A question mark in the empty prompt."""

    class KeysTaken(Message):
        """The prompt has handled every key that was pressed before Ctrl+C."""

    class Typed(Message):
        """The text in the prompt changed."""

    def __init__(self) -> None:
        super().__init__(id="prompt")
        self._sources: PromptSources | None = None
        self._completer: Completer | None = None
        self._attachments = DraftAttachments(self._refuse)
        self._shown_mark: DraftMark | None = None
        self._walk: HistoryWalk | None = None
        self._menu_dismissed = False
        self._loaded_text = ""
        self._returned_text = ""
        self._query: Query | None = None
        self._answered: Query | None = None
        self._modes: PromptModes | None = None
        self._suggested = ""
        self._offered = ""
        self.changed_at = float("-inf")
        self.menu = CompletionMenu()
        self.area = PromptArea(self._take_key, self._take_paste, _PLACEHOLDER)

    def compose(self) -> ComposeResult:
        """A sign and the text field in a frame; the menu comes over it, see `attach`."""
        with Horizontal(id="prompt-frame"):
            yield Static("›", id="prompt-sign", markup=False)
            yield self.area

    def attach(self, sources: "PromptSources") -> None:
        """Complete and remember from now on; before, the prompt only takes text."""
        from agent_tui.ui.prompt.completion import Completer

        self._sources = sources
        self._completer = Completer(sources)
        self.mount(self.menu, before=0)
        self._update_menu()

    @property
    def draft(self) -> Draft:
        """The draft in the prompt."""
        return self._attachments.draft(self.area.text)

    def load(
        self, draft: Draft, *, cursor_at_start: bool = False, is_returned: bool = False
    ) -> None:
        """Replace the present text with `draft`, without opening a menu.

        Args:
            draft: The new draft.
            cursor_at_start: Whether the cursor goes before it instead of after it.
            is_returned: ``/undo`` returned it: typed behind it, ``/undo`` is the command.
        """
        self._attachments.load(draft)
        self._loaded_text = draft.text
        self._returned_text = draft.text if is_returned else ""
        self._menu_dismissed = False
        self.area.load_text(draft.text)
        if not cursor_at_start:
            self.area.move_cursor(self.area.document.end)
        if self.area.modes is not None:
            self.area.modes.begin()
        self._close_menu()

    def clear(self) -> None:
        """Empty the prompt and end the walk through the history."""
        self._walk = None
        self.load(Draft())
        if self.area.modes is not None:
            self.area.modes.begin(is_writing=True)
            self._show_mode()

    def use_modes(self, settings: "Settings") -> None:
        """Give the keys of the text field to the modes that `settings` want, if any."""
        from agent_tui.ui.prompt.modes import brought_modes

        wanted = next((one for one in brought_modes() if one.are_wanted(settings)), None)
        if wanted is not self._modes:
            self._modes = wanted
            self.area.modes = wanted.make(self.area, self._update_mode) if wanted else None
            self._show_mode()

    def _update_mode(self, walk: "Walk") -> None:
        """Update after a key of a mode: the mode may change, or another draft be requested."""
        if walk:
            self._walk_history(older=walk == "older")
        self._show_mode()
        self._update_menu()

    def _show_mode(self) -> None:
        modes = self.area.modes
        self.query_one("#prompt-frame").border_title = modes.title if modes is not None else None

    def suggest(self, text: str) -> None:
        """Show `text` while the prompt is empty, to be sent unchanged; empty for none."""
        self._suggested = text
        sends = keys_in_force().hint("submit", "sends this")
        self.area.placeholder = f"{text}  ({sends})" if text else _PLACEHOLDER

    def offer(self, text: str) -> None:
        """Let Enter or Tab put `text` into the empty prompt; another Enter sends it."""
        self._offered = text

    def take(self, text: str) -> None:
        """Put `text` into the prompt as if it had been typed."""
        self.load(Draft(text))
        self._loaded_text = ""
        self._update_menu()
        self.focus()

    def put_before(self, drafts: Sequence[Draft]) -> None:
        """Put `drafts` above the present draft, which is kept."""
        present = self.draft
        self.load(join_drafts((*drafts, present)))

    def remember(self, draft: Draft) -> None:
        """Add to the history.

        Raises:
            OSError: the history file cannot be written.
        """
        if self._sources is not None:
            self._sources.history.add(draft.with_mentions())

    def go_back_to(self, draft: Draft | None) -> None:
        """Continue an earlier draft, if any; Down returns to the present one."""
        if draft is not None:
            self._begin_walk((draft,))
            self._walk_history(older=True)

    def focus(self, scroll_visible: bool = True) -> "Prompt":
        """Focus the text field."""
        self.area.focus(scroll_visible)
        return self

    def close_menu(self) -> bool:
        """Close the menu until another completion begins; false if none was open."""
        if not self.menu.is_open:
            return False
        self._menu_dismissed = True
        self._close_menu()
        return True

    def _take_key(self, key: str) -> bool:
        """Use up a key that does not write; false leaves it to the text field and the app."""
        if self.menu.is_open and self._take_menu_key(key):
            return True
        if self._sources is None and key == "ctrl+j":
            # An Enter from before the terminal was ours comes in as a line feed.
            self.send()
            return True
        if key == "tab" and self._take_offered():
            return True
        if key == "tab":
            self._menu_dismissed, self._loaded_text = False, ""
            self._update_menu()
            return True
        return self._do(keys_in_force().action(key), is_arrow=key in ("up", "down"))

    def _do(self, action: str, *, is_arrow: bool) -> bool:
        """Carry out the action of a key; false if it is not for the prompt, or does nothing now.

        `is_arrow`: the key moves the cursor if there is a row to move to.
        """
        sources, area = self._sources, self.area
        match action:
            case "submit":
                self.send()
            case "history_older" if not is_arrow or (
                area.is_on_first_row and not area.selected_text
            ):
                self._walk_history(older=True)
            case "history_newer" if self._walk and (not is_arrow or area.is_on_last_row):
                self._walk_history(older=False)
            case "toggle_details" if (mark := area.mark_at_cursor) and mark.kind == "paste":
                self._open_paste(mark)
            case "history_search" if sources is not None:
                self.post_message(self.HistoryWanted(sources.history.drafts))
            case "paste_image" if sources is not None:
                pasting = self._paste_clipboard(sources)
                self.run_worker(pasting, group="clipboard", exclusive=True)
            case "help" if sources is not None and not area.text:
                self.post_message(self.HelpWanted())
            case _:
                return False
        return True

    def _take_menu_key(self, key: str) -> bool:
        if key in ("enter", "tab") and self._menu_lags():
            return False
        match key:
            case "up" | "ctrl+p":
                self.menu.move(-1)
            case "down" | "ctrl+n":
                self.menu.move(1)
            case "escape":
                self.close_menu()
            case "tab":
                self._insert_current()
            case "enter" if self._enter_chooses:
                item = self.menu.current
                self._insert_current()
                if item is not None and item.runs:
                    self.send()
            case _:
                return False
        return True

    def _menu_lags(self) -> bool:
        """Whether the items still answer less than was typed; those known at once are fetched."""
        if self._query_now() != self._query:
            self._update_menu()
        return not self.menu.is_open or self._answered != self._query

    @property
    def is_behind(self) -> bool:
        """Whether the menu does not match the text at the cursor yet."""
        return self._query_now() != self._answered

    def _query_now(self) -> "Query | None":
        if self._completer is None:
            return None
        from agent_tui.ui.prompt.completion import query_at

        area = self.area
        return query_at(
            area.text_before_cursor,
            is_first_line=area.cursor_location[0] == 0,
            is_shell=area.text.startswith("!"),
        )

    @property
    def _enter_chooses(self) -> bool:
        """Whether Enter takes the highlighted item.

        What is written is sent as it is if it is an argument, a name that no command begins
        with (a mistyped command must not run another one), or what may be a path or a variable.
        """
        item, query = self.menu.current, self._query
        if item is None or query is None:
            return item is not None
        if item.insert == self.area.text_before_cursor[query.start :]:
            return item.runs  # a folder whose name is written already: nothing would change
        if self.menu.was_moved or query.kind == "mention":
            return True
        if query.kind == "skill":
            return False
        if query.kind == "name":
            return item.label.startswith(f"/{query.typed.lower()}")
        return item.stands_for and bool(query.typed.strip())

    def send(self) -> None:
        r"""Enter: send the draft, or the suggestion; after ``\`` begin a new line."""
        if self.area.text_before_cursor.endswith("\\"):
            self.area.replace_before_cursor(1, "\n")
            return
        draft = self.draft.trim()
        if self._returned_text and draft.text.removeprefix(self._returned_text).strip() == _UNDO:
            returned = Draft(self._returned_text, draft.pastes, draft.images)
            self._submit(Draft(_UNDO))
            self.load(returned, is_returned=True)  # it stays if nothing is undone
            return
        if draft.is_empty:
            draft = Draft(self._suggested)
        if draft.is_empty:
            self._take_offered()
            return
        if self._sources is not None and self._sources.registry.refusal(draft.text):
            find = self._send_if_found(draft, self.area.text, self._sources)
            self.run_worker(find, group="unknown", exclusive=True)
            return
        self._submit(draft)

    def _submit(self, draft: Draft) -> None:
        self.clear()
        self.post_message(self.Submitted(draft))

    async def _send_if_found(self, draft: Draft, text: str, sources: "PromptSources") -> None:
        """Send a `draft` with an unknown command if it is found now, and `text` is unchanged."""
        await sources.look_for_commands()
        if reason := sources.registry.refusal(draft.text):
            self._refuse(reason)
        elif self.area.text == text:
            self._submit(draft)

    def _take_offered(self) -> bool:
        """Put the offered text into the empty prompt; false if there is none."""
        offered = self._suggested or self._offered
        if self.area.text or not offered:
            return False
        self.load(Draft(offered))
        return True

    def _walk_history(self, *, older: bool) -> None:
        if self._sources is None:
            return
        walk = self._walk or self._begin_walk(self._sources.history.drafts)
        step = walk.older(self.draft) if older else walk.newer(self.draft)
        if step is None:
            return
        self.load(step, cursor_at_start=older and "\n" in step.text)
        self._walk = walk

    def _begin_walk(self, drafts: Sequence[Draft]) -> "HistoryWalk":
        """Step through `drafts` from now on, starting at the present draft."""
        from agent_tui.drafts.history import HistoryWalk

        self._walk = HistoryWalk(drafts, self.draft)
        return self._walk

    async def _take_paste(self, text: str) -> str:
        return await self._attachments.take_paste(text, self._sources)

    async def _paste_clipboard(self, sources: "PromptSources") -> None:
        """Ctrl+V: paste the clipboard's image, else the text copied here."""
        from agent_tui.ui.terminal.clipboard import clipboard_image

        folder = cache_folder("clipboard")
        try:
            path = await asyncio.to_thread(clipboard_image, folder, os.environ)
        except OSError as error:
            self._refuse(f"Cannot save the clipboard image: {error.strerror}.")
            return
        if path is not None:
            if mark := await self._attachments.take_image(os.fspath(path), sources):
                self.area.insert(f"{mark} ")
        else:
            self.post_message(self.NoImage())

    async def _attach_mentioned(self, path: str, written: str) -> None:
        """Replace the mention of an image with its mark, if it is still there."""
        mark = await self._attachments.take_image(path, self._sources) if self._sources else ""
        for row, line in enumerate(self.area.document.lines):
            if mark and (column := line.find(written)) >= 0:
                self.area.replace(mark, (row, column), (row, column + len(written)))
                return

    def _refuse(self, reason: str) -> None:
        self.post_message(self.Refused(reason))

    def _open_paste(self, mark: DraftMark) -> None:
        """Replace a mark with its pasted text."""
        text = self._attachments.paste(mark.number)
        if text is None:
            return
        if len(text) > _MOST_OPENED_CHARS:
            opens = keys_in_force().hint("external_editor", "opens it in your editor")
            self._refuse(f"This paste is too long to show here{opens and f'; {opens}'}.")
            return
        row, _ = self.area.cursor_location
        place = (row, mark.start), (row, mark.end)
        self.area.replace(text, *place, maintain_selection_offset=False)

    def _show_mark(self) -> None:
        """Show what the mark at the cursor can do."""
        mark = self.area.mark_at_cursor
        if mark == self._shown_mark:
            return
        self._shown_mark = mark
        frame = self.query_one("#prompt-frame")
        can_open = (
            mark is not None and mark.kind == "paste" and bool(self._attachments.paste(mark.number))
        )
        hint = keys_in_force().hint("toggle_details", "opens the paste")
        frame.border_subtitle = hint if can_open and hint else None

    @on(TextArea.Changed)
    def _text_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.changed_at = time.monotonic()
        if length := report_length(self.area.text_before_cursor):
            self.area.replace_before_cursor(length, "")
            return
        is_shell = self.area.text.startswith("!")
        if is_shell != self.has_class("-shell"):
            # Only then: an update lays the whole screen out again, too much for every key.
            self.set_class(is_shell, "-shell")
            self.query_one("#prompt-sign", Static).update("$" if is_shell else "›")
        self._update_menu()
        self._show_mark()
        self.post_message(self.Typed())

    @on(TextArea.SelectionChanged)
    def _cursor_moved(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        self._update_menu()
        self._show_mark()

    @on(CompletionMenu.Chosen)
    def _item_clicked(self, event: CompletionMenu.Chosen) -> None:
        event.stop()
        self._insert(event.item)
        self.area.focus()

    def on_resize(self) -> None:
        """Keep the menu just above the prompt, however tall it is.

        The field is measured again, because Textual keeps the height from when space was short.
        """
        self.area.refresh(layout=True)
        self._update_menu()

    def _update_menu(self) -> None:
        completer = self._completer
        if completer is None:
            return
        query = self._query_now()
        if query is None:
            self._menu_dismissed = False
            completer.forget()
        is_writing = self.area.modes is None or self.area.modes.is_writing
        is_quiet = self._menu_dismissed or self.area.text == self._loaded_text or not is_writing
        if query is None or is_quiet:
            self._query = self._answered = query
            self._close_menu()
            return
        if query == self._query and (self._answered != query or self.menu.is_open):
            self._show_again()  # the cursor or the screen moved; the query is the same
            return
        was_name = self._query is not None and self._query.kind == "name"
        is_name_begun = query.kind == "name" and not was_name
        self._query = query
        if is_name_begun:
            self.run_worker(self._look_for_commands(), group="commands", exclusive=True)
        answer = completer.answer(query)
        if callable(answer):
            find = partial(self._show_later, query, answer)
            self.run_worker(find, group="completion", exclusive=True)
        else:
            self._show(answer)

    async def _show_later(
        self, query: "Query", find: "Callable[[], AsyncGenerator[Items, None]]"
    ) -> None:
        async with aclosing(find()) as answers:
            async for items in answers:
                if query == self._query and not self._menu_dismissed:
                    self._show(items)

    async def _look_for_commands(self) -> None:
        """Look for prompt files that appeared or vanished since the menu was last open."""
        sources, completer = self._sources, self._completer
        if sources is None or completer is None or not await sources.look_for_commands():
            return
        is_wanted = not self._menu_dismissed and self.area.text != self._loaded_text
        query = self._query
        if query is not None and query.kind == "name" and is_wanted:
            self._show(completer.names(query))

    def _show_again(self) -> None:
        if self.menu.is_open:
            self.menu.open(self.menu.items, above=self.region.y, width=self.size.width)

    def _show(self, items: "Sequence[MenuItem]") -> None:
        self._answered = self._query
        if not items:
            self._close_menu()
        else:
            self.menu.open(items, above=self.region.y, width=self.size.width)

    def _close_menu(self) -> None:
        if self.menu.is_open:
            self.menu.close()

    def _insert_current(self) -> None:
        if (item := self.menu.current) is not None:
            self._insert(item)

    def _insert(self, item: "MenuItem") -> None:
        if self._query is None:
            return
        self._close_menu()
        before, start = self.area.text_before_cursor, self._query.start
        is_enclosed = self._query.kind == "mention" and before[:start].endswith(_OPENING)
        insert = item.insert.rstrip() if is_enclosed else item.insert
        self.area.replace_before_cursor(len(before) - start, insert)
        if self._query.kind == "mention" and is_image_name(item.label):
            attach = partial(self._attach_mentioned, item.label, item.insert.rstrip())
            self.run_worker(attach, group="images")
