"""The bases of all screens above the chat: how they close, and how pages scroll."""

from collections.abc import Callable
from typing import ClassVar, Generic, ParamSpec, TypeVar

from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.types import CSSPathType

ResultT = TypeVar("ResultT")
ParamsT = ParamSpec("ParamsT")


class Modal(ModalScreen[ResultT], Generic[ResultT]):
    """A screen above others that closes only once.

    Fast keys may still arrive after the key that closes it. Textual would then close the screen
    below, and fail if that is the chat.
    """

    def dismiss(self, result: ResultT | None = None) -> AwaitComplete:
        """Close it with `result`; does nothing once it is closed."""
        if not self.is_current:
            return AwaitComplete.nothing()
        return super().dismiss(result)

    def when_drawn(
        self, act: Callable[ParamsT, None], *args: ParamsT.args, **kwargs: ParamsT.kwargs
    ) -> None:
        """Call `act` after the next refresh, unless the screen is being removed by then.

        Textual calls back a screen whose widgets are gone already, where a query finds nothing
        and ends the program.
        """

        def act_if_there() -> None:
            if self.is_mounted and self.display:
                act(*args, **kwargs)

        self.call_after_refresh(act_if_there)


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
        wants_choice: Whether the user does.
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
        """Close, and request the choice."""
        if self._can_choose:
            self.wants_choice = True
            self.dismiss(None)
