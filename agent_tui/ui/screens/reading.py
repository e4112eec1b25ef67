"""What all pages to read have in common: how one moves in them and leaves them."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.types import CSSPathType

from agent_tui.ui.screens.modal import Modal


class ReadingScreen(Modal[None]):
    """A page that scrolls; closed with Esc, Enter or q. Its scrolling part is ``#page``."""

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "leave", "Close"),
        Binding("up,k", "scroll(-1)", "Up", show=False),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-10)", "Page up", show=False),
        Binding("pagedown,space", "scroll(10)", "Page down", show=False),
    ]

    def action_scroll(self, step: int) -> None:
        """Scroll the page."""
        self.query_one("#page").scroll_relative(y=step, animate=False)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)
