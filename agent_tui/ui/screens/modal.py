"""What every screen above the chat is built on."""

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

ResultT = TypeVar("ResultT")
ParamsT = ParamSpec("ParamsT")


class Modal(ModalScreen[ResultT], Generic[ResultT]):
    """A screen above others that is left once.

    Keys typed fast are on their way to it already when the one before them closes it. Textual
    would close what lies below for the second, and fail where that is the chat.
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
