"""What every screen above the chat is built on."""

from typing import Generic, TypeVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Static

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


class FieldRow(Horizontal):
    """A field of one line behind the sign that the prompt has."""

    def __init__(self, field: Input) -> None:
        super().__init__()
        self._field = field

    def compose(self) -> ComposeResult:
        """The sign and the field."""
        yield Static("›", markup=False)
        yield self._field
