"""Asks one yes-or-no question."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.safe_text import safe_text
from agent_tui.ui.keys_line import KeysLine
from agent_tui.ui.screens.modal import Modal


class ConfirmScreen(Modal[bool]):
    """True after y; false after n or Esc. Enter answers nothing, as it is typed by habit.

    Args:
        question: What is asked.
        consequence: What happens after a yes.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "confirm.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
    ]

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self._question = question
        self._consequence = consequence

    def compose(self) -> ComposeResult:
        """Question, consequence, keys."""
        with Vertical(id="confirm"):
            yield Static(safe_text(self._question), id="page-title", markup=False)
            yield Static(safe_text(self._consequence), id="confirm-text", markup=False)
            yield KeysLine("y yes · n no", id="page-keys")

    def action_answer(self, agreed: bool) -> None:
        """Close with the answer."""
        self.dismiss(agreed)
