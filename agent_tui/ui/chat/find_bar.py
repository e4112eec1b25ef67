"""The search of the chat: a field above the prompt."""

from collections.abc import Callable
from typing import ClassVar, TypeVar

from textual import getters, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static

from agent_tui.safe_text import safe_text
from agent_tui.ui.chat.widgets import ChatWidgets
from agent_tui.ui.parts import any_app, keys_line
from agent_tui.ui.transcript.finder import FindState
from agent_tui.ui.transcript.view import Transcript

ReturnT = TypeVar("ReturnT")

_NARROW_COLUMNS = 100
"""On a narrower screen the keys are named in few words."""


class FindBar(Horizontal):
    """Searches `chat` for what is typed into it until it is closed.

    Args:
        chat: What is searched. It stays still meanwhile.
        typed: Called with each key, so that nothing else takes the keys of somebody typing.
        closed: Called when the search is over.
    """

    app = getters.app(any_app)

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

    def __init__(
        self, chat: Transcript, typed: Callable[[], None], closed: Callable[[], object]
    ) -> None:
        super().__init__(id="find")
        self._chat = chat
        self._tell_typed = typed
        self._tell_closed = closed
        self._stays = False

    def compose(self) -> ComposeResult:
        """A sign, the field, and the state of the search."""
        yield Static("find ", id="find-sign", markup=False)
        yield Input(id="find-text", compact=True, placeholder="text in the chat")
        yield Static(id="find-state", markup=False)

    def on_mount(self) -> None:
        """Keep the chat still from now on."""
        self._chat.begin_find(self.show)
        self.show(FindState(""))

    def open(self, text: str = "") -> None:
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
        self._tell_typed()
        shown = safe_text(event.value, keep_newlines=False)
        if shown != event.value:
            self._field.value = shown
        else:
            self._chat.find(shown)

    @on(Input.Submitted)
    def _go_to_next(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_keep(1)

    def action_go(self, direction: int) -> None:
        """Up, Down: show the previous or the next match."""
        self._tell_typed()
        self._chat.find_next(direction)

    def action_keep(self, direction: int) -> None:
        """Enter: show the next match, and stay there when the search closes."""
        self._stays = True
        self.action_go(direction)

    def action_close(self) -> None:
        """Esc: close, and return to the original place unless Enter was pressed."""
        self._chat.end_find(stays=self._stays)
        self.remove()
        self._tell_closed()


async def open_find(app: App[ReturnT], widgets: ChatWidgets, text: str = "") -> None:
    """Show the search below the chat, or go back to it; look for `text` if given."""
    bars = app.query(FindBar)
    if bars:
        bar = bars.first()
    else:
        bar = FindBar(widgets.transcript, widgets.approval.postpone, widgets.prompt.focus)
        await app.query_one("#upper").mount(bar)
    bar.open(text)


def close_find(app: App[ReturnT]) -> bool:
    """End the search of the chat, wherever the focus is; false if there is none."""
    bars = app.query(FindBar)
    for bar in bars:
        bar.action_close()
    return bool(bars)


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
