"""The search of the chat: a field above the prompt."""

from collections.abc import Iterator
from time import perf_counter
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from agent_tui.features.find.finder import Finder, FindState
from agent_tui.safe_text import safe_text
from agent_tui.ui.chat.bar import BarDesk, ChatBar
from agent_tui.ui.parts import keys_line
from agent_tui.ui.transcript.blocks import BlockId
from agent_tui.ui.transcript.stack import can_toggle

_COUNT_INTERVAL_S = 0.03
_COUNT_SLICE_S = 0.01
"""Reading 5,000 messages for the first time takes a few slices; a key never waits longer."""

_NARROW_COLUMNS = 100
"""On a narrower screen the keys are named in few words."""


class FindBar(ChatBar):
    """Searches the chat for what is typed into it until it is closed.

    The chat stays still meanwhile. A block that is folded is unfolded while it has the current
    match.
    """

    DEFAULT_CSS = """
    FindBar {
        height: 1;
        padding: 0 2;
        background: $surface;
    }
    #find-sign { width: auto; color: $text-warning; text-style: bold; }
    #find-text { width: 1fr; min-width: 12; background: $surface; }
    #find-state { width: auto; max-width: 75%; padding-left: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "go(1)", "Next match", show=False),
        Binding("up", "go(-1)", "Previous match", show=False),
        Binding("shift+enter", "keep(-1)", "Previous match", show=False),
        Binding("escape", "close", "Close", show=False),
    ]

    def __init__(self, desk: BarDesk) -> None:
        super().__init__(desk)
        self.id = "find"
        self._chat = desk.chat
        self._finder = Finder(self._chat.stack, lambda: self._chat.palette)
        self._counting: Iterator[None] | None = None
        self._wants_match = False
        self._unfolded: BlockId | None = None
        self._stays = False

    def compose(self) -> ComposeResult:
        """A sign, the field, and the state of the search."""
        yield Static("find ", id="find-sign", markup=False)
        yield Input(id="find-text", compact=True, placeholder="text in the chat")
        yield Static(id="find-state", markup=False)

    def on_mount(self) -> None:
        """Keep the chat still from now on, and count while there is time."""
        self._chat.hold(self._finder)
        self.set_interval(_COUNT_INTERVAL_S, self._count_on)
        self.show(FindState(""))

    def open(self, text: str) -> None:
        """Take the focus; search for `text` if it is given."""
        field = self._field
        if text:
            field.value = text
        field.focus()
        field.action_select_all()

    def show(self, state: FindState) -> None:
        """Show the state of the search."""
        is_narrow = self.app.size.width < _NARROW_COLUMNS
        text = _state_text(state, stays=self._stays, is_narrow=is_narrow)
        self.query_one("#find-state", Static).update(text)

    @property
    def _field(self) -> Input:
        return self.query_one("#find-text", Input)

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        self.desk.typed()
        shown = safe_text(event.value, keep_newlines=False)
        if shown != event.value:
            self._field.value = shown
        else:
            self._look_for(shown)

    @on(Input.Submitted)
    def _go_to_next(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_keep(1)

    def action_go(self, direction: int) -> None:
        """Up, Down: show the previous or the next match."""
        self.desk.typed()
        self._finder.step(direction)
        self._show_match()

    def action_keep(self, direction: int) -> None:
        """Enter: show the next match, and stay there when the search closes."""
        self._stays = True
        self.action_go(direction)

    def action_close(self) -> None:
        """Esc: close, and return to the original place unless Enter was pressed."""
        stays = self._stays and self._finder.current is not None
        if not stays:
            self._fold_again()
        self._chat.let_go(stays=stays)
        super().action_close()

    def _look_for(self, text: str) -> None:
        """Look for another text; the nearest match becomes current."""
        self._finder.look_for(text)
        self._counting, self._wants_match = self._finder.counting(), bool(text)
        self._count_on()
        self._chat.refresh()

    def _count_on(self) -> None:
        """Count for a few milliseconds; go to a match if one is wanted and all are known."""
        finder = self._finder
        if self._counting is None:
            if not finder.is_stale:
                return
            self._counting = finder.counting()
        deadline = perf_counter() + _COUNT_SLICE_S
        for number, _ in enumerate(self._counting):
            if not number % 50 and perf_counter() > deadline:
                break
        else:
            self._counting = None
            if self._wants_match:
                self._wants_match = False
                finder.start_at(self._chat.held_at)
                self._show_match()
                return
        self.show(finder.state())

    def _show_match(self) -> None:
        """Scroll just enough to show the current match, unfolded."""
        finder, chat = self._finder, self._chat
        current = finder.current
        if current is None or current.id != self._unfolded:
            self._fold_again()
        if current is not None:
            index = chat.stack.index(current.id)
            if index is not None and not finder.is_drawn(current):
                self._unfold(index)
            chat.reveal(current.id, finder.row_of(current))
        self.show(finder.state())
        chat.refresh()

    def _unfold(self, index: int) -> None:
        item = self._chat.stack[index]
        if can_toggle(item.block) and not item.is_expanded:
            item.is_expanded = True
            self._chat.stack.invalidate(index)
            self._unfolded = item.id

    def _fold_again(self) -> None:
        """Fold the block that was unfolded only to show a match."""
        stack = self._chat.stack
        index = None if self._unfolded is None else stack.index(self._unfolded)
        self._unfolded = None
        if index is not None and stack[index].is_expanded:
            stack[index].is_expanded = False
            stack.invalidate(index)


def _state_text(state: FindState, *, stays: bool, is_narrow: bool) -> Content:
    """``3 of 17 in a reply``, and the keys; where Esc leads depends on `stays`."""
    ways = "↑↓" if is_narrow else "enter ↓ next · ↑ previous"
    keys = f"{ways} · esc {'close' if stays else 'back'}"
    if not state.text:
        return keys_line("esc close")
    if not state.total:
        found = "no match" if state.is_counted else "searching…"
        return Content.assemble((found, "$text-warning"), " · ", keys_line("esc back"))
    place = f" in {state.where}" if state.where else ""
    return Content.assemble(
        (f"{state.number:,} of {state.total:,}", "bold $foreground"),
        (f"{place} · ", "$foreground-muted"),
        keys_line(keys),
    )
