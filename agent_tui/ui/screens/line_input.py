"""Asks for one line of text, such as a name, a label or the value of a setting."""

import asyncio
from collections.abc import Callable
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
    """Returns the typed text, stripped; None after Esc.

    Args:
        title: The question.
        about: Its purpose: one line, or several if the text is checked.
        present: The initial text.
        empty_means: What an empty text does; empty if nothing special.
        is_selected: Whether the first key replaces the initial text.
        problem_of: Why a text cannot be used, empty if it can; asked at every key.
        last_look: The same, after a look at all that takes longer; called in a thread.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "line_input.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Close")]

    def __init__(
        self,
        title: str,
        about: str,
        present: str,
        *,
        empty_means: str = "",
        is_selected: bool = True,
        problem_of: Callable[[str], str] | None = None,
        last_look: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__()
        texts = (title, about, present, empty_means)
        self._texts = tuple(safe_text(text, keep_newlines=False) for text in texts)
        self._is_selected = is_selected
        self._problem_of = problem_of
        self._last_look = last_look

    def compose(self) -> ComposeResult:
        """Title, what it is about, a field, what is wrong, the keys."""
        title, about, present, empty_means = self._texts
        is_checked = self._problem_of is not None
        hint = "" if is_checked else "a few words"
        empty = f"empty {empty_means} · " if empty_means else ""
        classes = "question -field -checked" if is_checked else "question -field"
        with Vertical(id="line", classes=classes):
            yield Static(title, id="page-title", markup=False)
            yield Static(about, id="line-about", markup=False)
            field = Input(
                present,
                placeholder=hint,
                select_on_focus=self._is_selected,
                id="line-text",
                compact=True,
            )
            yield FieldRow(field)
            if is_checked:
                yield Static(id="line-problem", markup=False)
            yield KeysLine(f"enter save · {empty}esc close", id="page-keys")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._problem_of is not None:
            self._say(self._problem_of(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._problem_of is None:
            self.dismiss(event.value.strip())
        elif not self._problem_of(event.value):
            self.run_worker(self._keep(event.value), exclusive=True)

    async def _keep(self, text: str) -> None:
        self._say("Checking…")
        problem = await asyncio.to_thread(self._last_look, text) if self._last_look else ""
        self._say(problem)
        if not problem:
            self.dismiss(text.strip())

    def _say(self, problem: str) -> None:
        self.query_one("#line-problem", Static).update(safe_text(problem, keep_newlines=False))
        self.query_one("#line-text").set_class(bool(problem), "-refused")

    def action_leave(self) -> None:
        """Close and leave everything as it is."""
        self.dismiss(None)
