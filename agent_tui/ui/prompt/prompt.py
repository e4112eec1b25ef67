"""The prompt widget: text field, history, completion menu and pastes put together."""

from collections.abc import Sequence
from functools import partial
from typing import assert_never

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static, TextArea

from agent_tui.ui.prompt.area import PromptArea
from agent_tui.ui.prompt.completion import (
    MAX_ITEMS,
    ArgumentQuery,
    MentionQuery,
    MenuItem,
    NameQuery,
    Query,
    choice_items,
    command_items,
    mention_item,
    query_at,
)
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.prompt.history import HistoryWalk
from agent_tui.ui.prompt.menu import CompletionMenu
from agent_tui.ui.prompt.pastes import Draft, is_large, paste_mark
from agent_tui.ui.prompt.sources import PromptSources
from agent_tui.ui.prompt.stray import clean_paste, report_length

PLACEHOLDER = "Ask anything · / commands · @ files · ! shell"


class Prompt(Vertical):
    """Where the person writes."""

    class Submitted(Message):
        """Enter was pressed on something that can be dispatched; the prompt is empty again."""

        def __init__(self, draft: Draft) -> None:
            super().__init__()
            self.draft = draft

    class Refused(Message):
        """Enter was pressed on an unknown command; the text stays."""

        def __init__(self, reason: str) -> None:
            super().__init__()
            self.reason = reason

    class HistoryWanted(Message):
        """An earlier draft shall be searched among `drafts`, oldest first."""

        def __init__(self, drafts: Sequence[Draft]) -> None:
            super().__init__()
            self.drafts = drafts

    class Typed(Message):
        """What stands in the prompt changed."""

    def __init__(self, sources: PromptSources | None = None) -> None:
        super().__init__(id="prompt")
        self._sources = sources
        self._pastes: dict[int, str] = {}
        self._walk: HistoryWalk | None = None
        self._menu_dismissed = False
        self._loaded_text = ""
        self._query: Query | None = None
        self._answered: Query | None = None
        self.menu = CompletionMenu()
        self.area = PromptArea(self._take_key, self._take_paste, PLACEHOLDER)

    def compose(self) -> ComposeResult:
        """A sign and the text field in a frame, the menu over it."""
        yield self.menu
        with Horizontal(id="prompt-frame"):
            yield Static("›", id="prompt-sign", markup=False)
            yield self.area

    def attach(self, sources: PromptSources) -> None:
        """Complete and remember from now on; before, the prompt only takes text."""
        self._sources = sources
        self._update_menu()

    @property
    def draft(self) -> Draft:
        """What stands in the prompt."""
        return Draft(self.area.text, dict(self._pastes))

    def load(self, draft: Draft, *, cursor_at_start: bool = False) -> None:
        """Put `draft` in place of what stands there, without opening a menu."""
        self._pastes = dict(draft.pastes)
        self._loaded_text = draft.text
        self._menu_dismissed = False
        self.area.load_text(draft.text)
        if not cursor_at_start:
            self.area.move_cursor(self.area.document.end)
        self._close_menu()

    def clear(self) -> None:
        """Empty the prompt and end the walk through the history."""
        self._walk = None
        self.load(Draft())

    def put_before(self, texts: Sequence[str]) -> None:
        """Put `texts` above what stands in the prompt, which is kept."""
        rest = self.area.text
        parts = [*texts, rest] if rest.strip() else list(texts)
        self.load(Draft("\n\n".join(parts), self._pastes))

    def remember(self, draft: Draft) -> None:
        """Add to the history.

        Raises:
            OSError: the history file cannot be written.
        """
        if self._sources is not None:
            self._sources.history.add(draft)

    def go_back_to(self, draft: Draft | None) -> None:
        """Write on an earlier draft, if any; Down brings back what stands here now."""
        if draft is None:
            return
        self._walk = HistoryWalk((draft,), self.draft)
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
        match key:
            case "enter":
                self._enter()
            case "ctrl+j" if self._sources is None:
                # An Enter from before the terminal was ours comes in as a line feed.
                self._enter()
            case "ctrl+r" if self._sources is not None:
                self.post_message(self.HistoryWanted(self._sources.history.drafts))
            case "up" if self.area.is_on_first_row and self.area.selection.is_empty:
                self._walk_history(older=True)
            case "down" if self.area.is_on_last_row and self._walk is not None:
                self._walk_history(older=False)
            case "tab":
                self._menu_dismissed, self._loaded_text = False, ""
                self._update_menu()
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
                    self._enter()
            case _:
                return False
        return True

    def _menu_lags(self) -> bool:
        """Whether the items still answer less than was typed; those known at once are fetched."""
        if self._query_now() != self._query:
            self._update_menu()
        return not self.menu.is_open or self._answered != self._query

    def _query_now(self) -> Query | None:
        row, _ = self.area.cursor_location
        return query_at(self.area.text_before_cursor, is_first_line=row == 0)

    @property
    def _enter_chooses(self) -> bool:
        """Whether Enter takes the highlighted item; a written argument counts as it stands."""
        if isinstance(self._query, ArgumentQuery):
            return self.menu.was_moved
        return self.menu.current is not None

    def _enter(self) -> None:
        if self.area.text_before_cursor.endswith("\\"):
            self.area.replace_before_cursor(1, "\n")
            return
        draft = self.draft.trimmed()
        if draft.is_empty:
            return
        sources = self._sources
        if sources is not None and (reason := sources.registry.refusal(draft.text)):
            self.post_message(self.Refused(reason))
            return
        self.clear()
        self.post_message(self.Submitted(draft))

    def _walk_history(self, *, older: bool) -> None:
        if self._sources is None:
            return
        if self._walk is None:
            self._walk = HistoryWalk(self._sources.history.drafts, self.draft)
        step = self._walk.older(self.draft) if older else self._walk.newer(self.draft)
        if step is None:
            return
        walk = self._walk
        self.load(step, cursor_at_start=older and "\n" in step.text)
        self._walk = walk

    def _take_paste(self, text: str) -> str:
        clean = clean_paste(text)
        if not is_large(clean):
            return clean
        number = max(self._pastes, default=0) + 1
        self._pastes[number] = clean
        return paste_mark(number, clean)

    @on(TextArea.Changed)
    def _text_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if length := report_length(self.area.text_before_cursor):
            self.area.replace_before_cursor(length, "")
            return
        is_shell = self.area.text.startswith("!")
        if is_shell != self.has_class("-shell"):
            # Only then: an update lays the whole screen out again, too much for every key.
            self.set_class(is_shell, "-shell")
            self.query_one("#prompt-sign", Static).update("!" if is_shell else "›")
        self._update_menu()
        self.post_message(self.Typed())

    @on(TextArea.SelectionChanged)
    def _cursor_moved(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        self._update_menu()

    @on(CompletionMenu.Chosen)
    def _item_clicked(self, event: CompletionMenu.Chosen) -> None:
        event.stop()
        self._insert(event.item)
        self.area.focus()

    def on_resize(self) -> None:
        """Keep the menu just above the prompt, however tall it is."""
        self._update_menu()

    def _update_menu(self) -> None:
        sources = self._sources
        if sources is None:
            return
        query = self._query = self._query_now()
        if query is None:
            self._menu_dismissed = False
        if query is None or self._menu_dismissed or self.area.text == self._loaded_text:
            self._close_menu()
            return
        match query:
            case NameQuery():
                self._show(command_items(sources.registry.commands, query.typed))
            case ArgumentQuery():
                self._show(choice_items(sources.choices(query.name), query.typed))
            case MentionQuery():
                find = partial(self._find_files, sources.files, query)
                self.run_worker(find, group="completion", exclusive=True)
            case _:
                assert_never(query)

    async def _find_files(self, files: FileIndex, query: MentionQuery) -> None:
        paths = await files.search(query.typed, MAX_ITEMS)
        if query == self._query and not self._menu_dismissed:
            self._show([mention_item(path) for path in paths])

    def _show(self, items: Sequence[MenuItem]) -> None:
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

    def _insert(self, item: MenuItem) -> None:
        if self._query is None:
            return
        self._close_menu()
        length = len(self.area.text_before_cursor) - self._query.start
        self.area.replace_before_cursor(length, item.insert)
