"""Asks one question with a few answers, each with a key of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.ui.sanitise import safe_text

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Choice(Generic[AnswerT]):
    """One answer: its key, what it does, and what the screen returns for it."""

    key: str
    label: str
    value: AnswerT


class ChoiceScreen(ModalScreen[AnswerT], Generic[AnswerT]):
    """Returns the value of the chosen answer, None after Esc.

    Enter answers nothing, as it is typed by habit.

    Args:
        question: What is asked.
        facts: What there is to know before answering.
        choices: The answers.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "confirm.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel")]
    KEYS_HINT: ClassVar[str] = "esc cancel"

    def __init__(self, question: str, facts: str, choices: Sequence[Choice[AnswerT]]) -> None:
        super().__init__()
        self._question = question
        self._facts = facts
        self._choices = tuple(choices)

    def compose(self) -> ComposeResult:
        """Question, facts, answers, keys."""
        lines = [
            Content.assemble((f" {choice.key} ", "bold $primary"), f" {choice.label}")
            for choice in self._choices
        ]
        with Vertical(id="confirm"):
            yield Static(safe_text(self._question), id="page-title", markup=False)
            yield Static(safe_text(self._facts), id="confirm-text", markup=False)
            yield Static(Content("\n").join(lines), id="confirm-choices", markup=False)
            yield Static(self.KEYS_HINT, id="page-keys", markup=False)

    def on_key(self, event: Key) -> None:
        """A key of an answer gives it."""
        for choice in self._choices:
            if event.key == choice.key:
                event.stop()
                self.dismiss(choice.value)

    def action_cancel(self) -> None:
        """Close without an answer."""
        self.dismiss(None)
