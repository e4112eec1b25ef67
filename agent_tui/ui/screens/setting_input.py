"""Asks for the value of a setting, and says at every key whether it can be used."""

import asyncio
from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.types import CSSPathType
from textual.widgets import Input, Static

from agent_tui.config.specs import SettingSpec
from agent_tui.safe_text import safe_text
from agent_tui.ui.parts import FieldRow, KeysLine
from agent_tui.ui.screens.modal import Modal


class SettingInput(Modal[str]):
    """Returns what was written once it can be used; None where it was left with Esc.

    Args:
        spec: The setting.
        present: What stands in the field at first.
        problem_of: Why a text cannot be used, empty if it can; quick.
        last_look: The same, after a look at all that takes longer; called in a thread.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "settings.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Close")]

    def __init__(
        self,
        spec: SettingSpec,
        present: str,
        problem_of: Callable[[str], str],
        last_look: Callable[[str], str],
    ) -> None:
        super().__init__()
        self._spec = spec
        self._present = present
        self._problem_of = problem_of
        self._last_look = last_look

    def compose(self) -> ComposeResult:
        """Name, what it is, a field, what is wrong, the keys."""
        with Vertical(id="setting-input", classes="question -field"):
            yield Static(safe_text(self._spec.name), id="page-title", markup=False)
            text = f"{self._spec.description}. Allowed: {self._spec.allowed}."
            yield Static(safe_text(text), id="setting-about", markup=False)
            present = safe_text(self._present, keep_newlines=False)
            yield FieldRow(Input(present, id="setting-value", compact=True))
            yield Static(id="setting-problem", markup=False)
            yield KeysLine("enter save · esc close", id="page-keys")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._say(self._problem_of(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.run_worker(self._keep(event.value), exclusive=True)

    async def _keep(self, text: str) -> None:
        problem = self._problem_of(text)
        if not problem:
            self._say("Checking…")
            problem = await asyncio.to_thread(self._last_look, text)
        self._say(problem)
        if not problem:
            self.dismiss(text)

    def _say(self, problem: str) -> None:
        self.query_one("#setting-problem", Static).update(safe_text(problem, keep_newlines=False))
        self.query_one("#setting-value").set_class(bool(problem), "-refused")

    def action_leave(self) -> None:
        """Close and leave everything as it is."""
        self.dismiss(None)
