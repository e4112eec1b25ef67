"""What keys, commands and sent texts do in the chat; `AgentApp` puts it on the screen."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver

from agent_tui.commands.core.command import Command
from agent_tui.commands.core.parser import parse_command
from agent_tui.commands.core.registry import CalledCommand, UnknownCommand
from agent_tui.errors import AgentTuiError
from agent_tui.ui.guest import TerminalGuest
from agent_tui.ui.keys import APP_BINDINGS, NEED_THE_CHAT, NOT_OVER_SCREENS
from agent_tui.ui.legible import legible_variables
from agent_tui.ui.outcome import UiOutcome
from agent_tui.ui.prompt.pastes import Draft
from agent_tui.ui.prompt.prompt import Prompt
from agent_tui.ui.status_bar import StatusBar
from agent_tui.ui.surroundings import Surroundings

if TYPE_CHECKING:
    from agent_tui.agent.runtime import AgentRuntime
    from agent_tui.events import AgentEvent
    from agent_tui.ui.parts import Parts

LEAVE_WITHIN_S = 1.5
"""A second Ctrl+C within this time leaves."""
GO_BACK_WITHIN_S = 0.6
"""A second Esc within this time shows what one can go back to."""


class ChatApp(App[UiOutcome]):
    """The prompt, the status bar and what can be done with the parts above them.

    Args:
        folder: Shown until the conversation is loaded.
        has_mouse: Whether it is run with the mouse.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*APP_BINDINGS]

    def __init__(self, folder: str, *, has_mouse: bool) -> None:
        super().__init__()
        self._cleared_at: float | None = None
        self._escaped_at: float | None = None
        self.parts: Parts | None = None
        self.prompt = Prompt()
        self.status = StatusBar(folder)
        self.guest = TerminalGuest(self.write_to_terminal, has_mouse=has_mouse)
        self._surroundings = Surroundings(self)

    @property
    def ready(self) -> "Parts":
        """The parts, once they are there."""
        assert self.parts is not None
        return self.parts

    @property
    def runtime(self) -> "AgentRuntime":
        """The conversation, once it is there."""
        return self.ready.options.runtime

    def get_css_variables(self) -> dict[str, str]:
        """The theme's colours, with text that can be read."""
        self.theme_variables = legible_variables(super().get_css_variables())
        return self.theme_variables

    # What is sent

    def take(self, draft: Draft) -> None:
        """Remember and dispatch what was sent; what begins a turn is in sight."""
        self._remember(draft)
        self.ready.newcomer.sent()
        if not (self.ready.turns.is_running or parse_command(draft.full_text)):
            self.ready.chat.follow_end()
        self.dispatch(draft.full_text, draft)

    def dispatch(self, text: str, draft: Draft | None = None) -> None:
        """Run a command, a shell command, or send a message: `draft`, if `text` comes from one."""
        draft = draft or Draft(text)
        called = self.ready.registry.read(text)
        if isinstance(called, CalledCommand):
            self.run_worker(self._run(called), group="command")
        elif isinstance(called, UnknownCommand):
            self.prompt.put_before((draft,))
            self.ready.front.say(called.why, "warning")
        elif text.strip("! \n") and self.runtime.log.is_read_only:
            self.prompt.put_before((draft,))
            self.ready.front.say(
                "This session is open read-only. /fork goes on in a copy of it.", "warning"
            )
        elif text.startswith("!") and text.strip("! \n"):
            in_context = not text.startswith("!!")
            line = text.lstrip("!").strip()
            self.ready.turns.start(self.runtime.run_bash(line, in_context=in_context))
        elif self.runtime.model.name:
            self.ready.turns.send(draft)
        else:
            self.prompt.put_before((draft,))
            from agent_tui.ui.start import choose_model

            self.run_worker(choose_model(self), group="command")

    async def _run(self, called: CalledCommand) -> None:
        try:
            await called.run(self.ready.front)
        except AgentTuiError as error:
            self.ready.front.say(str(error), "error")

    def edit_again(self, text: str) -> None:
        """Put an earlier message into the prompt; what stands there goes into the history."""
        draft = self.prompt.draft.trimmed()
        if not draft.is_empty:
            self._remember(draft)
        self.prompt.clear()
        self.prompt.load(Draft(text))

    def _remember(self, draft: Draft) -> None:
        try:
            self.prompt.remember(draft)
        except OSError as error:
            self.ready.front.say(
                f"The prompt history cannot be written: {error.strerror}.", "warning"
            )

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the chat do nothing before it is there or while a screen lies above it."""
        if self.parts is None:
            return action not in NEED_THE_CHAT
        return not (action in NOT_OVER_SCREENS and len(self.screen_stack) > 1)

    def action_interrupt(self) -> None:
        """Esc: close a search, stop what runs; twice while nothing does: go back in the chat."""
        from agent_tui.ui.find import close_find

        before, self._escaped_at = self._escaped_at, None
        if close_find(self) or self.ready.turns.interrupt() or not self.runtime.log.entries:
            return
        now = self.ready.options.clock()
        if before is not None and now - before <= GO_BACK_WITHIN_S:
            self.dispatch("/tree")
        else:
            self._escaped_at = now

    def action_clear_or_leave(self) -> None:
        """Ctrl+C: copy a selection, else clear the prompt, else leave the second time."""
        if selected := self.screen.get_selected_text():
            self.notify(self.ready.front.copy(selected), markup=False)
            self.screen.clear_selection()
            return
        now = self.parts.options.clock() if self.parts is not None else time.monotonic()
        if self._cleared_at is not None and now - self._cleared_at <= LEAVE_WITHIN_S:
            self.exit(UiOutcome())
            return
        self._cleared_at = now
        self.prompt.clear()
        self.notify("Press ctrl+c again to leave.", timeout=LEAVE_WITHIN_S)

    def action_suspend_process(self) -> None:
        """Ctrl+Z: give the terminal back to the shell; draw everything again afterwards."""
        self.guest.depart()
        super().action_suspend_process()
        self.screen.refresh()

    @on(Driver.SignalResume)
    def _terminal_is_back(self) -> None:
        self.guest.arrive()

    @contextmanager
    def suspend(self) -> Generator[None]:
        """Lend the terminal to something else for the length of a ``with`` block."""
        self.guest.depart()
        try:
            with super().suspend():
                yield
        finally:
            self.guest.arrive()

    def action_leave_if_empty(self) -> None:
        """Ctrl+D: leave if nothing is written, else delete to the right."""
        if self.prompt.area.text:
            self.prompt.area.action_delete_right()
        else:
            self.ready.front.leave()

    def action_next_permission_mode(self) -> None:
        """Shift+Tab: the next mode in turn."""
        from agent_tui.commands.permissions import PERMISSION_MODES

        place = PERMISSION_MODES.index(self.runtime.permission_mode)
        self.runtime.set_permission_mode(PERMISSION_MODES[(place + 1) % len(PERMISSION_MODES)])
        self.refresh_status()

    def action_toggle_details(self) -> None:
        """Ctrl+O: unfold or fold all tool output and summaries."""
        self.ready.chat.toggle_details()

    def action_toggle_thinking(self) -> None:
        """Ctrl+T: show or hide thinking."""
        self.ready.chat.show_thinking = not self.ready.chat.show_thinking

    def action_take_back_queue(self) -> None:
        """Alt+Up: queued messages come back into the prompt."""
        self.ready.turns.take_back_queue()

    def action_scroll_chat(self, pages: int) -> None:
        """Page through the chat from the prompt."""
        if pages < 0:
            self.ready.chat.action_page_up()
        else:
            self.ready.chat.action_page_down()

    def action_chat_home(self) -> None:
        """To the first message."""
        self.ready.chat.scroll_home(animate=False)

    def action_chat_end(self) -> None:
        """To the newest message."""
        self.ready.chat.follow_end()

    async def action_find(self) -> None:
        """Ctrl+F: search the chat."""
        from agent_tui.ui.find import open_find

        await open_find(self)

    def action_edit_outside(self) -> None:
        """Ctrl+G: write the prompt in $EDITOR."""
        from agent_tui.ui.prompt.editor import edit_outside

        edit_outside(self, self.prompt)

    def action_open_palette(self) -> None:
        """Ctrl+P: find a command or an action."""
        self.run_worker(self._do_from_palette(), group="palette", exclusive=True)

    async def _do_from_palette(self) -> None:
        from agent_tui.ui.screens.palette import CommandPalette

        actions = [entry for entry in APP_BINDINGS if isinstance(entry, Binding) and entry.show]
        palette = CommandPalette(self.ready.registry.commands, actions)
        match await self.ready.front.show_screen(palette):
            case Command() as command if command.needs_argument:
                self.edit_again(f"/{command.name} ")
            case Command() as command:
                self.dispatch(f"/{command.name}")
            case Binding() as binding:
                await self.run_action(binding.action)
            case None:
                pass

    def action_switch_mouse(self) -> None:
        """Alt+M: leave the mouse to the terminal, or take it back."""
        self.dispatch("/mouse")

    # What is told beside the chat

    def refresh_status(self) -> None:
        """Bring everything around the chat up to date."""
        self._surroundings.refresh()

    def refresh_hint(self) -> None:
        """Tell a new user what is useful now."""
        self._surroundings.refresh_hint()

    def notice(self, event: "AgentEvent") -> None:
        """Something happened and is shown: what is around the chat follows."""
        self._surroundings.notice(event)

    def write_to_terminal(self, sequence: str) -> None:
        """Send what steers the terminal itself; nothing where there is none."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)
