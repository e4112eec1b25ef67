"""Asks for one line of text, such as a name or a label."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.types import CSSPathType
from textual.widgets import Input, Static

from agent_tui.safe_text import safe_text
from agent_tui.ui.parts import FieldRow, KeysLine
from agent_tui.ui.screens.modal import Modal


class LineInputScreen(Modal[str]):
    """Returns what was typed, without spaces around it; None where it was left with Esc.

    Args:
        title: What is asked for.
        about: What it is for, one line.
        present: What stands in the field at first.
        empty_means: What an empty text does.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "line_input.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Close")]

    def __init__(self, title: str, about: str, present: str, *, empty_means: str) -> None:
        super().__init__()
        self._title = title
        self._about = about
        self._present = present
        self._empty_means = empty_means

    def compose(self) -> ComposeResult:
        """Title, what it is about, a field, the keys."""
        about = safe_text(self._about, keep_newlines=False)
        present = safe_text(self._present, keep_newlines=False)
        with Vertical(id="line", classes="question -field"):
            yield Static(safe_text(self._title, keep_newlines=False), id="page-title", markup=False)
            yield Static(about, id="line-about", markup=False)
            yield FieldRow(Input(present, placeholder="a few words", id="line-text", compact=True))
            empty = safe_text(self._empty_means, keep_newlines=False)
            keys = f"enter save · empty {empty} · esc close"
            yield KeysLine(keys, id="page-keys")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip())

    def action_leave(self) -> None:
        """Close and leave everything as it is."""
        self.dismiss(None)
