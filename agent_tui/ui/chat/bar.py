"""Lines above the prompt that features bring, such as a search of the chat."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from textual import getters
from textual.app import App
from textual.containers import Horizontal

from agent_tui.ui.chat.widgets import ChatWidgets
from agent_tui.ui.parts import any_app
from agent_tui.ui.transcript.view import Transcript

ReturnT = TypeVar("ReturnT")


@dataclass(frozen=True, slots=True)
class BarDesk:
    """What a bar works with.

    Attributes:
        chat: The chat.
        typed: Called with each key, so that nothing else takes the keys of somebody typing.
        closed: Called when the bar is closed.
    """

    chat: Transcript
    typed: Callable[[], None]
    closed: Callable[[], object]


class ChatBar(Horizontal):
    """A line above the prompt. Esc closes it, wherever the focus is.

    Args:
        desk: What it works with.
    """

    app = getters.app(any_app)

    def __init__(self, desk: BarDesk) -> None:
        super().__init__()
        self.desk = desk

    def open(self, text: str) -> None:
        """Take the focus; begin with `text` if it is not empty."""
        self.focus()

    def action_close(self) -> None:
        """Go away."""
        self.remove()
        self.desk.closed()


async def open_bar(app: App[ReturnT], widgets: ChatWidgets, kind: type[ChatBar], text: str) -> None:
    """Show a bar below the chat in place of another one, or go back to it; see `ChatBar.open`."""
    bar = next((one for one in app.query(ChatBar) if type(one) is kind), None)
    if bar is None:
        close_bar(app)
        desk = BarDesk(widgets.transcript, widgets.approval.postpone, widgets.prompt.focus)
        bar = kind(desk)
        await app.query_one("#upper").mount(bar)
    bar.open(text)


def close_bar(app: App[ReturnT]) -> bool:
    """Close the bar below the chat, wherever the focus is; false if there is none."""
    bars = app.query(ChatBar)
    for bar in bars:
        bar.action_close()
    return bool(bars)
