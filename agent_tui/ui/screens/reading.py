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


class LeadingScreen(ReadingScreen):
    """A page about compactions from which one can go on to what a compaction keeps.

    Args:
        can_choose: Whether one can now.

    Attributes:
        wants_choice: Whether the person does.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("m", "choose", "Choose what is kept")]

    def __init__(self, *, can_choose: bool) -> None:
        super().__init__()
        self._can_choose = can_choose
        self.wants_choice = False

    @property
    def choose_hint(self) -> str:
        """The key, for the line of keys; empty if it does nothing."""
        return "m choose what is kept · " if self._can_choose else ""

    def action_choose(self) -> None:
        """Close, and say that it goes on."""
        if self._can_choose:
            self.wants_choice = True
            self.dismiss(None)
