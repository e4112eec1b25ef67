"""The first-run chooser: ways to a model, for someone who has none set up yet."""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.types import CSSPathType
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from agent_tui.providers.base import FoundModel, ModelRef
from agent_tui.ui.options import FirstRun, KeyChoice, ModelSource
from agent_tui.ui.sanitise import safe_text


@dataclass(frozen=True, slots=True)
class UseModel:
    """Go on with this model; its key, if one was pasted, has been handed over."""

    model: ModelRef


@dataclass(frozen=True, slots=True)
class TakeTour:
    """Show the scripted tour."""


FirstRunResult: TypeAlias = UseModel | TakeTour
_Choice: TypeAlias = KeyChoice | FoundModel | Literal["tour"]


class FirstRunScreen(ModalScreen[FirstRunResult]):
    """Returns what to go on with; None if the person wants to look around without a model."""

    CSS_PATH: ClassVar[CSSPathType | None] = ["screens/page.tcss", "first_run.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back")]

    def __init__(self, offered: FirstRun, models: ModelSource) -> None:
        super().__init__()
        self._offered = offered
        self._models = models
        self._choices: list[_Choice] = []
        self._pasting: KeyChoice | None = None

    def compose(self) -> ComposeResult:
        """What is missing, the ways, the field for a key."""
        with Vertical(id="first-run"):
            yield Static("Welcome to agent-tui", id="page-title", markup=False)
            yield Static(
                "No model can be reached yet. Choose how to go on:",
                id="first-run-text",
                markup=False,
            )
            yield OptionList(id="first-run-list", markup=False, compact=True)
            yield Static(id="first-run-key-text", markup=False)
            yield Input(password=True, placeholder="Paste the key here", id="first-run-key")
            yield Static("↑↓ move · enter choose · esc look around", id="page-keys", markup=False)

    def on_mount(self) -> None:
        """Offer what is known; look for local servers behind the first paint."""
        self._show_key_field(None)
        self.offer(())
        self._list.focus()
        self.run_worker(self._look_for_servers())

    @property
    def _list(self) -> OptionList:
        return self.query_one("#first-run-list", OptionList)

    async def _look_for_servers(self) -> None:
        self.offer(await self._models.found())

    def offer(self, found: tuple[FoundModel, ...]) -> None:
        """Show the ways, those of `found` first; the one in hand stays in hand."""
        place = self._list.highlighted
        present = self._choices[place] if place else None  # the first one was not moved to
        self._choices = [*found, *self._offered.keys, "tour"]
        self._list.set_options(Option(_choice_line(choice)) for choice in self._choices)
        self._list.highlighted = self._choices.index(present) if present else 0

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        match self._choices[event.option_index]:
            case KeyChoice() as choice:
                self._show_key_field(choice)
            case FoundModel() as found:
                self.dismiss(UseModel(found.ref))
            case "tour":
                self.dismiss(TakeTour())

    @on(Input.Submitted)
    def _key_pasted(self, event: Input.Submitted) -> None:
        event.stop()
        key = event.value.strip()
        if key and self._pasting is not None:
            self._offered.keep_key(self._pasting.env_name, key)
            self.dismiss(UseModel(self._pasting.model))

    def action_back(self) -> None:
        """Leave the key field, or the chooser."""
        if self._pasting is not None:
            self._show_key_field(None)
            self._list.focus()
        else:
            self.dismiss(None)

    def _show_key_field(self, choice: KeyChoice | None) -> None:
        self._pasting = choice
        field, text = self.query_one(Input), self.query_one("#first-run-key-text", Static)
        field.display = text.display = choice is not None
        field.clear()
        if choice is not None:
            text.update(
                f"The key is kept in memory for this run only. "
                f"To keep it, set {choice.env_name} in your shell."
            )
            field.focus()


def _choice_line(choice: _Choice) -> Content:
    match choice:
        case KeyChoice():
            return _line(f"Paste a key for {choice.label}", f"or set {choice.env_name}")
        case FoundModel():
            return _line(f"Use {choice.ref.name}", choice.via)
        case "tour":
            return _line("Take the tour", "a scripted model in a scratch folder, no key needed")


def _line(label: str, detail: str) -> Content:
    return Content.assemble(
        safe_text(label, keep_newlines=False),
        "  ",
        (safe_text(detail, keep_newlines=False), "$foreground-muted"),
    )
