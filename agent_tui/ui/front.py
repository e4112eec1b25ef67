"""The screen as a `Front`: what commands can do with the app."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from textual.app import SuspendNotSupported
from textual.screen import Screen

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.front import (
    CommandServices,
    FrontHelp,
    HeldAnswers,
    Level,
    Pickable,
    Question,
    Showable,
    TextQuestion,
    loss_question,
)
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.commands.model import PickableModels
from agent_tui.commands.program import command_sections
from agent_tui.commands.unread_rules import UnreadAnswer, file_to_open, unread_question
from agent_tui.config import Settings, TerminalStateSetting
from agent_tui.drafts.draft import Draft
from agent_tui.events import AgentEvent
from agent_tui.feature import load_object, own_features
from agent_tui.key_actions import KeyMap, keys_in_force
from agent_tui.messages import JsonObject
from agent_tui.permissions.rule_book import UnreadRules
from agent_tui.permissions.trust import FolderTrust
from agent_tui.tools.form import CANCELLED, Elicitation, accept_form
from agent_tui.ui.event_view import EventView
from agent_tui.ui.keys import key_guide
from agent_tui.ui.model_setup import ModelSetup
from agent_tui.ui.options import UiOptions
from agent_tui.ui.terminal.clipboard import copy_text
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.theme.themes import theme_names
from agent_tui.ui.turns import TurnRunner
from agent_tui.ui.window import Window

ResultT = TypeVar("ResultT")


class ScreenFront:
    """The app as commands see it: a `Front`, and its own `ScreenControls`.

    Attributes:
        options: What the screen was built from.
        setup: Gets the first model.
    """

    name = "the screen"
    can_ask = True
    can_pick = True

    def __init__(
        self,
        window: Window,
        options: UiOptions,
        view: EventView,
        turns: TurnRunner,
        registry: CommandRegistry,
    ) -> None:
        self._window = window
        self._app = window.app
        self.options = options
        self._view = view
        self._turns = turns
        self._registry = registry
        self._called_in = Draft()
        self.setup = ModelSetup(window, options, view, self.picker_screen)

    @property
    def runtime(self) -> AgentRuntime:
        """The conversation."""
        return self.options.runtime

    @property
    def services(self) -> CommandServices:
        """What else commands work on."""
        return self.options.services

    @property
    def screen(self) -> "ScreenFront":
        """What only a screen has."""
        return self

    @property
    def is_working(self) -> bool:
        """Whether an activity runs."""
        return self._turns.is_running

    @asynccontextmanager
    async def after_turn(self, says: str) -> AsyncGenerator[None]:
        """Say `says` and wait if something runs; what follows it begins after the block."""
        if self.is_working:
            self.say(says)
        async with self._turns.after_present():
            yield

    def help(self) -> FrontHelp:
        """The keys, and every command."""
        return FrontHelp(key_guide(keys_in_force()), command_sections(self._registry, self))

    # Telling

    def say(self, text: str, level: Level = "info") -> None:
        """Put one line into the chat."""
        self._view.say(text, level)

    def show_events(self, events: Iterable[AgentEvent]) -> None:
        """Show what a quick change of the runtime returned."""
        for event in events:
            self._view.show(event)
        self._view.refresh_status()

    def show_thinking(self, is_shown: bool) -> None:
        """Show or hide what the model thinks."""
        self._view.widgets.transcript.show_thinking = is_shown
        turn = keys_in_force().hint("toggle_thinking", "toggles it")
        told = f"Thinking is {'shown' if is_shown else 'hidden'}"
        self.say("; ".join(filter(None, (told, turn))) + ".")

    async def show(self, shown: Showable) -> None:
        """Show a page above the chat, until it is closed."""
        from agent_tui.ui.screens.modal import BringsScreen, FollowUp, PageScreen

        match shown:
            case BringsScreen():
                screen = cast("Screen[FollowUp]", shown.make_screen())
                if (follow_up := await self.show_screen(screen)) is not None:
                    await follow_up()
            case _:
                await self.show_screen(PageScreen(await shown.page()))

    # Asking

    async def show_screen(self, screen: Screen[ResultT]) -> ResultT | None:
        """Show a screen above the chat; returns its result, or None without one."""
        return await self._window.ask(screen)

    async def ask(self, question: Question[ResultT]) -> ResultT | None:
        """Ask above the chat; letters meant for the prompt go there."""
        return await _ask(self._window, question)

    async def ask_text(self, question: TextQuestion) -> str | None:
        """Ask in a field above the chat."""
        from agent_tui.ui.screens.choice import KeptInputScreen, LineInputScreen

        keep = question.keep_unsent
        screen = (KeptInputScreen if keep else LineInputScreen)(
            question.title,
            question.about,
            question.present,
            empty_means=question.empty_means,
            is_selected=not question.is_edited,
            keep_unsent=lambda draft: (
                keep(draft.sent_text) if keep else self._window.prompt.put_before((draft,))
            ),
        )
        return await self._window.ask(screen)

    async def fill_form(self, form: Elicitation) -> JsonObject:
        """Show questions above the chat; letters meant for the prompt go there first.

        What is written and not sent returns to the prompt.
        """
        from agent_tui.ui.screens.form import FormScreen

        quiet_s = self.options.approval_quiet_s
        await self._window.wait_for_chat(quiet_s)
        screen = FormScreen(
            form.fields, self._window.prompt.put_before, heading=form.heading, quiet_s=quiet_s
        )
        content = await self._window.ask(screen)
        return CANCELLED if content is None else accept_form(content)

    @contextmanager
    def hold_answers(self) -> Generator[HeldAnswers]:
        """Keep answers with the unsent draft; those that are not sent return to the prompt."""
        drafts, owner = self._view.drafts, object()
        held = HeldAnswers(
            lambda texts: drafts.hold(owner, [Draft("\n".join(texts))] if texts else [])
        )
        try:
            yield held
        finally:
            drafts.give_back(owner)

    async def pick(self, wanted: Pickable[ResultT]) -> ResultT | str | None:
        """Let the user pick an item, in the screen for its kind or else in a list."""
        from agent_tui.ui.screens.listing import ListingScreen

        screen = self.picker_screen(wanted)
        if screen is None:
            return await self.show_screen(ListingScreen(await wanted.listing()))
        # Such a screen returns the picked value, which the type of its class cannot express.
        return await self.show_screen(cast("Screen[ResultT]", screen))

    def picker_screen(self, wanted: object) -> Screen[object] | None:
        """The screen for this kind; None if there is none."""
        from agent_tui.ui.screens.listing import ModelPicker
        from agent_tui.ui.screens.modal import BringsPicker

        match wanted:
            case PickableModels():
                screen = ModelPicker(wanted.models, wanted.present, wanted.known)
            case BringsPicker():
                screen = wanted.make_picker()
            case _:
                kind = f"{type(wanted).__module__}:{type(wanted).__qualname__}"
                names = (feature.pickers.get(kind) for feature in own_features())
                name = next(filter(None, names), None)
                if name is None:
                    return None
                make = cast("Callable[[object, ScreenFront], Screen[object]]", load_object(name))
                screen = make(wanted, self)
        return cast("Screen[object]", screen)

    async def edit_file(self, path: Path) -> bool:
        """Open a file in the user's editor."""
        from agent_tui.ui.window import edit_file

        return edit_file(self._app, path)

    async def set_up_model(self) -> bool:
        """Offer ways to get a first model; false if there is one."""
        return not self.setup.has_model and await self.setup.choose()

    def warm_up(self) -> None:
        """Prepare the model in use while the user types."""
        self.setup.warm_up()

    # Working

    def serving(self, draft: Draft) -> "ScreenFront":
        """This front for a command called in `draft`, whose pastes stay pastes in what it sends."""
        front = copy(self)
        front._called_in = Draft(draft.text, draft.pastes)
        return front

    async def run(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Begin an activity of the runtime."""
        self._turns.start(events)

    async def send(self, text: str) -> None:
        """Deliver `text` to the running turn, or send it."""
        self._turns.queue(self._called_in.fold(text))

    def interrupt(self) -> bool:
        """Stop the running activity; false if none runs."""
        return self._turns.interrupt()

    def leave(self) -> None:
        """Exit the program; asks first during a turn."""
        if self.is_working:
            self._app.run_worker(self._ask_and_leave(), group="leave", exclusive=True)
        else:
            self._app.exit(UiOutcome())

    async def _ask_and_leave(self) -> None:
        question = loss_question(
            "Leave while something runs?", "It will be stopped. What it did so far is kept."
        )
        if await self.ask(question):
            self._app.exit(UiOutcome())

    # What only a screen has

    @property
    def theme_names(self) -> tuple[str, ...]:
        """Our themes, then Textual's."""
        return theme_names()

    @property
    def theme_in_use(self) -> str:
        """The theme that is shown."""
        return self._app.theme

    def set_theme(self, name: str) -> None:
        """Use another theme."""
        self._app.theme = name

    async def pick_theme(self) -> str | None:
        """Let the user try the themes on."""
        from agent_tui.ui.screens.listing import ThemePicker

        picker = ThemePicker(self.theme_names, self.theme_in_use, self.set_theme)
        return await self.show_screen(picker)

    def show_steps(self, is_shown: bool | None) -> bool:
        """Show or hide the steps of the demo."""
        return self._view.widgets.steps.turn(is_shown)

    def start_demo(self) -> None:
        """Leave this conversation for the demo."""
        self._window.leave(UiOutcome(wants_demo=True))

    @property
    def is_mouse_on(self) -> bool:
        """Whether clicks and drags come to the program."""
        return self._window.terminal.is_mouse_on

    def set_mouse(self, on: bool) -> None:
        """Take the mouse, or leave it to the terminal."""
        self._window.terminal.set_mouse(on)
        self._view.refresh_status()

    def use_status_fields(self, fields: tuple[str, ...]) -> None:
        """Show other parts in the status line, or in another order."""
        self._view.status.use_fields(fields)

    def use_terminal_state(self, setting: TerminalStateSetting) -> None:
        """Show the program's state in the terminal as `setting` says."""
        self._view.status.use_terminal_state(setting)

    def use_modes(self, settings: Settings) -> None:
        """Give the keys of the prompt to the modes that `settings` want, if any."""
        self._window.prompt.use_modes(settings)

    def use_keys(self, keys: KeyMap) -> None:
        """Use `keys` in the chat and in the prompt from now on."""
        self._window.use_keys(keys)
        self._view.refresh_status()

    async def show_bar(self, kind: type, text: str) -> None:
        """Show a bar of a feature above the prompt."""
        from agent_tui.ui.chat.bar import ChatBar, open_bar

        await open_bar(self._app, self._view.widgets, cast("type[ChatBar]", kind), text)

    def show_scrollback(self) -> None:
        """Write the whole conversation into the terminal's scrollback, and wait there."""
        from agent_tui.ui.terminal.scrollback import show_whole, wait_for_enter

        text = self._view.widgets.transcript.to_text()
        if not text:
            self.say("The conversation is empty.")
            return
        try:
            show_whole(self._app, text, wait_for_enter)
        except SuspendNotSupported:
            self.say("This terminal cannot show the scrollback. /export writes a file.", "warning")

    @property
    def last_reply(self) -> str:
        """The text of the model's last reply."""
        return self._view.widgets.transcript.last_reply_text

    def copy(self, text: str) -> str:
        """Copy to the clipboard and say how."""
        return copy_text(text, os.environ, self._app.copy_to_clipboard)


async def ask_at_start(window: Window, trust: FolderTrust, cwd: Path) -> None:
    """Ask about `cwd` before anything in it is read; keeps what is typed meanwhile."""
    from agent_tui.commands.trust import trust_question
    from agent_tui.errors import AgentTuiError

    question = await asyncio.to_thread(trust.question, cwd)
    if question is None:
        return
    answer = await _ask(window, trust_question(question))
    try:
        await asyncio.to_thread(trust.answer, question, answer)
    except AgentTuiError as error:
        window.app.notify(str(error), severity="warning", markup=False)


async def ask_about_unread(
    window: Window, find: Callable[[], Sequence[UnreadRules]]
) -> UnreadAnswer:
    """Ask what to do about deny rules that cannot be read, until they can or the user decides.

    Args:
        window: Shows the question.
        find: Reads the rules; blocking.

    Returns:
        "open" if nothing is wrong, or no longer.
    """
    from agent_tui.ui.window import edit_file

    while unread := await asyncio.to_thread(find):
        answer = await _ask(window, unread_question(unread))
        file = file_to_open(unread)
        if answer != "open" or file is None:
            return answer or "leave"
        edit_file(window.app, file)
    return "open"


async def _ask(window: Window, question: Question[ResultT]) -> ResultT | None:
    from agent_tui.ui.questions import EarlyKeys
    from agent_tui.ui.screens.choice import ChoiceScreen

    early = EarlyKeys(window.prompt) if question.is_grave else None
    area = window.prompt.area
    return await window.ask(
        ChoiceScreen(
            question,
            early,
            answered_by=partial(area.note_answer, may_open_field=True),
            take_paste=lambda paste: window.start_work(window.place_paste(paste.text)),
            send=window.prompt.send,
        )
    )
