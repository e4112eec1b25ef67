"""Asks one question with a few answers, each with a key of its own."""

from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.commands.core.questions import Question
from agent_tui.safe_text import safe_text
from agent_tui.ui.keys_line import KeysLine
from agent_tui.ui.screens.modal import Modal

AnswerT = TypeVar("AnswerT")


class ChoiceScreen(Modal[AnswerT], Generic[AnswerT]):
    """Returns the value of the chosen answer, None after Esc.

    Enter answers nothing, as it is typed by habit.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = [
        "page.tcss",
        "confirm.tcss",
        "choice.tcss",
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("up", "scroll(-1)", "Up", show=False),
        Binding("down", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-8)", "Page up", show=False),
        Binding("pagedown", "scroll(8)", "Page down", show=False),
    ]

    def __init__(self, question: Question[AnswerT]) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        """The facts scroll, so that the answers stay in sight however much there is to know."""
        question = self.question
        lines = [
            Content.assemble((f" {choice.key} ", "bold $primary"), f" {choice.label}")
            for choice in question.choices
        ]
        with Vertical(id="confirm"):
            yield Static(safe_text(question.title), id="page-title", markup=False)
            with VerticalScroll(id="confirm-scroll", can_focus=False):
                facts = safe_text("\n".join(question.facts))
                yield Static(facts, id="confirm-text", markup=False)
            yield Static(Content("\n").join(lines), id="confirm-choices", markup=False)
            yield KeysLine(f"esc {question.unanswered}", id="page-keys")

    def on_key(self, event: Key) -> None:
        """A key of an answer gives it."""
        for choice in self.question.choices:
            if event.key == choice.key:
                event.stop()
                self.dismiss(choice.value)

    def action_scroll(self, step: int) -> None:
        """Scroll the facts."""
        self.query_one("#confirm-scroll").scroll_relative(y=step, animate=False)

    def action_cancel(self) -> None:
        """Close without an answer."""
        self.dismiss(None)
