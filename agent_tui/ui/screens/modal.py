"""What every screen above the chat is built on."""

from typing import Generic, TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

ResultT = TypeVar("ResultT")


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
