"""The first-run chooser: ways to a model, for someone who has none set up yet."""

import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import ClassVar, Literal, TypeAlias

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import Screen
from textual.types import CSSPathType
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker

from agent_tui.commands.core.demo import Demo
from agent_tui.commands.core.front import ModelSource
from agent_tui.errors import AgentTuiError
from agent_tui.features.first_run.model_options import (
    MAX_NUMBER,
    AllModels,
    FirstRunOption,
    first_run_options,
    option_lines,
)
from agent_tui.providers.accounts import Account, how_to_enter
from agent_tui.providers.base import FoundModel, ModelRef
from agent_tui.providers.kept_keys import KEEPABLE
from agent_tui.providers.keys import key_variable
from agent_tui.safe_text import safe_text
from agent_tui.ui.front import ScreenFront
from agent_tui.ui.options import FirstRun, KeyChoice, ModelOffer
from agent_tui.ui.parts import FieldRow, KeysLine
from agent_tui.ui.questions import QUIET_S
from agent_tui.ui.screens.modal import Modal

_LOOKING = "No model is available yet. Looking for model servers on this machine…"
_NOTHING_RUNS = "No API key is set, and no model server is running on this machine."
_SOME_FOUND = "No model is selected yet. These are ready to use:"
_ASKS_NAME = "The model's full name, with its provider first:"
_NAME_EXAMPLE = "groq/llama-3.3-70b-versatile"
_ASKS_ADDRESS = "The server's URL:"
_ADDRESS_EXAMPLE = "http://127.0.0.1:8080/v1"
_ADDRESS_IS_KEPT = (
    "The next start uses it, too: it is kept in your config.toml. If it needs a key, start "
    "agent-tui with --base-url and --api-key-env."
)


AskForModel: TypeAlias = Callable[[Screen[ModelRef]], Coroutine[None, None, ModelRef | None]]
_Asked: TypeAlias = KeyChoice | Account | Literal["model name", "address"] | None


class FirstRunList(OptionList):
    """The options; reports when their width changes."""

    class Resized(Message):
        """The list has another size."""

    def on_resize(self) -> None:
        """Report the new size to the screen."""
        self.post_message(self.Resized())


class FirstRunScreen(Modal[ModelRef | Demo]):
    """Returns the model to use or the demo to show; None to look around without a model.

    A pasted key has been stored by then.

    Args:
        offered: The ways to a model.
        models: Answers which models can be used at once.
        local: The model to download, if there is one.
        ask: Shows another screen above this one and returns the model it was left with.
        clock: Monotonic seconds.
        quiet_s: Seconds without a key before Enter or a click chooses: what was meant for the
            prompt must not.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["../../ui/screens/modal.tcss", "screen.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("r", "look", "Look again"),
        *(Binding(str(n), f"choose({n})", show=False) for n in range(1, MAX_NUMBER + 1)),
    ]

    def __init__(
        self,
        offered: FirstRun,
        models: ModelSource,
        local: ModelOffer | None,
        ask: AskForModel,
        clock: Callable[[], float] = time.monotonic,
        quiet_s: float = QUIET_S,
    ) -> None:
        super().__init__()
        self._offered = offered
        self._quiet_s = quiet_s
        self._quiet_since_s = clock()
        self._models = models
        self._local = local
        self._ask_for_model = ask
        self._clock = clock
        self._options: tuple[FirstRunOption, ...] = ()
        self._is_looking = True
        self._asked: _Asked = None
        self._finding: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        """What is missing, then the options or the field for a name or a key."""
        with Vertical(id="first-run", classes="frame"):
            title = "Welcome to agent-tui" if self._offered.is_start else "Choose a model"
            yield Static(title, id="page-title", markup=False)
            yield Static(id="first-run-text", markup=False)
            yield FirstRunList(id="first-run-list", markup=False, compact=True)
            yield FieldRow(Input(id="first-run-field", compact=True))
            yield Static(id="first-run-note", markup=False)
            yield KeysLine(id="page-keys")

    def on_mount(self) -> None:
        """Offer what is known; look for local servers behind the first paint."""
        self.offer(())
        self._ask(None)
        self.action_look()

    @property
    def _list(self) -> FirstRunList:
        return self.query_one(FirstRunList)

    # The list

    def action_look(self) -> None:
        """Look for usable models, also on request."""
        self.run_worker(self._look(), group="look", exclusive=True)

    async def _look(self) -> None:
        self._is_looking = True
        self._fill_again()
        self._show_texts()
        found = await self._models.list_models()
        self._is_looking = False
        self.offer(found)
        self._show_texts()

    def offer(self, found: tuple[FoundModel, ...]) -> None:
        """Show the options, those of `found` first; keeps the highlighted one."""
        place = self._list.highlighted
        present = self._options[place] if place else None  # the first one was not moved to
        self._options = first_run_options(found, self._offered, self._local)
        self._fill()
        self._list.highlighted = self._options.index(present) if present in self._options else 0

    @on(FirstRunList.Resized)
    def _fit(self, event: FirstRunList.Resized) -> None:
        event.stop()
        self._fill_again()
        self.when_drawn(self._list.scroll_to_highlight)

    def _fill(self) -> None:
        """List the options; digits are added when the list no longer changes."""
        width = max(self._list.scrollable_content_region.width, 20)
        lines = option_lines(self._options, width, are_numbered=not self._is_looking)
        self._list.set_options(Option(line) for line in lines)

    def _fill_again(self) -> None:
        """List the same options in another form; keeps the highlighted one."""
        place = self._list.highlighted
        self._fill()
        self._list.highlighted = place

    def action_choose(self, number: int) -> None:
        """Take the option with this digit."""
        if self._asked is None and not self._is_looking and number <= len(self._options):
            self._list.highlighted = number - 1
            self._choose(self._options[number - 1])

    def on_key(self, event: events.Key) -> None:
        """Note the time of a typed key."""
        if event.is_printable:
            self._quiet_since_s = self._clock()

    @on(OptionList.OptionSelected)
    def _choose_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self._clock() - self._quiet_since_s >= self._quiet_s:
            self._choose(self._options[event.option_index])

    def _choose(self, option: FirstRunOption) -> None:
        match option:
            case KeyChoice() | Account():
                self._ask(option)
            case FoundModel(ref) if ref.is_local and self._local and not self._local.can_run():
                self._open_offer(self._local)
            case FoundModel(ref):
                self.dismiss(ref)
            case AllModels():
                self._open_all_models()
            case ModelOffer():
                self._open_offer(option)
            case "other provider":
                self._ask("model name")
            case "own server":
                self._ask("address")
            case Demo():
                self.dismiss(option)

    def _open_offer(self, offer: ModelOffer) -> None:
        self.run_worker(self._go_on_from(offer.make_screen(self._clock)), group="ask")

    def _open_all_models(self) -> None:
        from agent_tui.ui.screens.listing import ModelPicker

        self.run_worker(self._go_on_from(ModelPicker(self._models, ModelRef(""))), group="ask")

    async def _choose_of(self, found: tuple[FoundModel, ...]) -> None:
        """Use the only one of `found`, or let the user choose; the list shows them from then on."""
        from agent_tui.ui.screens.listing import ModelPicker

        if len(found) == 1:
            self.dismiss(found[0].ref)
            return
        self._ask(None)
        self.action_look()
        if found:
            await self._go_on_from(ModelPicker(self._models, ModelRef(""), found=found))

    async def _go_on_from(self, screen: Screen[ModelRef]) -> None:
        """Continue with the model chosen in `screen`; without one, show the list again."""
        if (model := await self._ask_for_model(screen)) is not None:
            self.dismiss(model)

    # The field

    @on(Input.Submitted)
    def _take_entry(self, event: Input.Submitted) -> None:
        event.stop()
        entered = event.value.strip()
        if not entered:
            return
        match self._asked:
            case "model name":
                self._name_entered(entered)
            case KeyChoice() as choice:
                self._offered.keep_key(choice.env_name, entered)
                self.dismiss(choice.model)
            case "address":
                self._find(self._models_at(entered))
            case Account() | None:
                pass

    def _name_entered(self, name: str) -> None:
        """Continue with the key of the model's provider; if that is unknown, litellm finds it."""
        try:
            model = self._models.resolve(name)
        except AgentTuiError as error:
            self._note(str(error))
            return
        if env_name := model.api_key_env or key_variable(model.provider):
            self._ask(KeyChoice(model.name, env_name, model))
        else:
            self.dismiss(model)

    def _find(self, finding: Awaitable[tuple[FoundModel, ...]]) -> None:
        """Let the user choose among the models that `finding` returns; Esc stops it."""
        choosing = self._choose_when_found(finding)
        self._finding = self.run_worker(choosing, group="find", exclusive=True)

    async def _choose_when_found(self, finding: Awaitable[tuple[FoundModel, ...]]) -> None:
        try:
            found = await finding
        except AgentTuiError as error:
            self._note(str(error))
        else:
            await self._choose_of(found)

    async def _models_at(self, address: str) -> tuple[FoundModel, ...]:
        self._note("Asking the server for its models…")
        return await self._offered.find_at(address)

    async def _models_of(self, account: Account) -> tuple[FoundModel, ...]:
        """Sign in to `account`; returns its models."""
        self._note("Asking for a code…")
        await self._offered.sign_in(
            account, lambda code: self._note(how_to_enter(code, account.title))
        )
        return tuple(one for one in await self._models.list_models() if one.via == account.title)

    def action_back(self) -> None:
        """Leave the field, or the chooser."""
        if self._finding is not None:
            self._finding.cancel()
        if self._asked is not None:
            self._ask(None)
        else:
            self.dismiss(None)

    def _ask(self, asked: _Asked) -> None:
        """Show a field or a note instead of the list, or the list again."""
        self._asked = asked
        field, has_field = self.query_one(Input), asked is not None
        self.query_one("#first-run-note").display = asked is not None
        self._list.display = asked is None
        field.clear()
        field.password = isinstance(asked, KeyChoice)
        self._note("")
        match asked:
            case KeyChoice(_, env_name, model):
                field.placeholder = "Paste the key here"
                self._note(
                    "The key is kept in memory for this run only. To save it, "
                    f"{_way_to_keep(env_name, model)}. It is used with {model.name}; "
                    "/model lists the others."
                )
            case Account():
                has_field = False
                self._find(self._models_of(asked))
            case "model name":
                field.placeholder = _NAME_EXAMPLE
            case "address":
                field.placeholder = _ADDRESS_EXAMPLE
                self._note(_ADDRESS_IS_KEPT)
            case None:
                pass
        self.query_one(FieldRow).display = field.display = has_field
        (field if has_field else self._list).focus()
        self._show_texts()

    def _note(self, text: str) -> None:
        self.query_one("#first-run-note", Static).update(safe_text(text))

    def _show_texts(self) -> None:
        """Show the text above and the keys below."""
        keys = "enter continue · esc back to the list"
        match self._asked:
            case KeyChoice(label):
                text = f"Key for {label}:"
            case Account(title=title):
                text, keys = f"Sign in to {title}", "esc back to the list"
            case "model name":
                text = _ASKS_NAME
            case "address":
                text = _ASKS_ADDRESS
            case None:
                is_found = any(isinstance(option, FoundModel) for option in self._options)
                text = _LOOKING if self._is_looking else _SOME_FOUND if is_found else _NOTHING_RUNS
                last = min(len(self._options), MAX_NUMBER)
                leave = "esc look around" if self._offered.is_start else "esc close"
                keys = f"↑↓ move · enter or 1-{last} choose · r look again · {leave}"
        self.query_one("#first-run-text", Static).update(safe_text(text, keep_newlines=False))
        self.query_one("#page-keys", KeysLine).update(keys)


def _way_to_keep(env_name: str, model: ModelRef) -> str:
    """What the user can do so that the next run finds the key too."""
    in_shell = f"set {env_name} in your shell"
    is_keepable = KEEPABLE.get(model.provider) == env_name
    return f"run agent-tui login {model.provider}, or {in_shell}" if is_keepable else in_shell


def make_chooser(offered: FirstRun, front: ScreenFront) -> FirstRunScreen:
    """The screen that offers the ways to a model above the chat."""
    options = front.options
    return FirstRunScreen(
        offered,
        options.services.models,
        options.local,
        front.show_screen,
        options.clock,
        options.approval_quiet_s,
    )
