"""The program on the screen: the first paint, keys, and where messages of widgets go.

Only the prompt and the status bar belong to the first paint, so this module and what it imports
stay light (no pydantic, no conversation). `_bring_up` builds everything else afterwards; what the
person does goes to the controller, and what is shown comes through the view.
"""

import asyncio
import gc
import os
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events as textual_events
from textual import on
from textual.app import App, ComposeResult, ScreenStackError
from textual.binding import Binding, BindingsMap, BindingType
from textual.containers import Vertical
from textual.css.query import NoMatches
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter, Monochrome, NoColor
from textual.notifications import SeverityLevel
from textual.widgets import TextArea
from textual.worker import WorkerFailed

from agent_tui.drafts.draft import Draft
from agent_tui.errors import AgentTuiError
from agent_tui.key_actions import KeyMap, keys_in_force, use_keys
from agent_tui.safe_text import safe_text
from agent_tui.ui.keys import APP_BINDINGS, NEED_THE_CHAT, NOT_OVER_SCREENS, bind_keys
from agent_tui.ui.prompt.prompt import Prompt
from agent_tui.ui.status.status_bar import StatusBar
from agent_tui.ui.terminal.heap import return_free_memory
from agent_tui.ui.terminal.input import ASK_BACKGROUND, BackgroundTold, TerminalDriver
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.terminal.state import TerminalState, crash_report, leave_on_signals
from agent_tui.ui.theme.contrast import WithoutColours, legible_variables
from agent_tui.ui.theme.themes import (
    DARK,
    HEIGHT_CLASSES,
    LIGHT,
    WIDTH_CLASSES,
    own_themes,
    theme_or_default,
)
from agent_tui.ui.window import Window
from agent_tui.ui.workers import ClosingWorkers

if TYPE_CHECKING:  # these come after the first paint, see `_bring_up`
    from agent_tui.agent.runtime import AgentRuntime
    from agent_tui.ui.approval_panel import ApprovalPanel
    from agent_tui.ui.assembly import LoadedChat
    from agent_tui.ui.controller import Controller
    from agent_tui.ui.event_view import EventView
    from agent_tui.ui.options import UiOptions
    from agent_tui.ui.transcript.view import Transcript

_NO_IMAGE = (
    "No image on the clipboard, or no tool to read it (wl-paste, xclip or pngpaste). "
    "To paste text, use ctrl+shift+v. To attach a file, drop it on the window."
)
_WITHOUT_COLOURS = WithoutColours()
_CHAT_CSS = Path(__file__).with_name("chat.tcss")
_LEAVE_WITHIN_S = 1.5
"""A second Ctrl+C within this time leaves."""


class AgentApp(App[UiOutcome]):
    """The chat, the prompt and the status bar over one `AgentRuntime`.

    Args:
        load: Builds everything it works on, see `UiOptions`; called in a thread after the
            first paint. Run the app with `agent_tui.ui.terminal.run.run_ui`.
        theme: Name of the theme; empty for the default.
        folder: Shown until the conversation is loaded.
        before_loading: Asks what has to be known before `load`, on the event loop; an
            `AgentTuiError` of either ends the app.
        has_mouse: Whether it is run with the mouse.
        asks_background: Whether the terminal's own answer counts more than `theme`.
    """

    CSS_PATH = "app.tcss"
    TITLE = "agent-tui"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*APP_BINDINGS]

    def __init__(
        self,
        load: "Callable[[], UiOptions]",
        theme: str = "",
        folder: str = "",
        before_loading: Callable[[Window], Awaitable[None]] | None = None,
        *,
        has_mouse: bool = True,
        asks_background: bool = False,
    ) -> None:
        self._knows_theme = False
        super().__init__()
        self._workers = ClosingWorkers(self)
        self.HORIZONTAL_BREAKPOINTS = list(WIDTH_CLASSES)
        self.VERTICAL_BREAKPOINTS = list(HEIGHT_CLASSES)
        for own_theme in own_themes():
            self.register_theme(own_theme)
        self._begin_with(theme_or_default(theme, frozenset(self.available_themes)))
        self.prompt = Prompt()
        self.status = StatusBar(folder)
        self.window = Window(
            self,
            self.prompt,
            TerminalState(self.write_to_terminal, has_mouse=has_mouse),
            self.use_keys,
            self._note_left_screen,
        )
        self.loaded: LoadedChat | None = None
        self._load = load
        self._before_loading = before_loading
        self._early_drafts: list[Draft] = []
        self._knows_how_to_copy = False
        self._leaves_until = float("-inf")
        self._theme_to_mend = self.theme if asks_background else ""
        self.use_keys(KeyMap())

    def _handle_exception(self, error: Exception) -> None:
        """Show an error and exit, but not if it only says that the program is ending.

        Textual adds no widgets while it ends, yet still mounts screens, calls back those whose
        widgets are gone, and lets workers run: there, a query finds nothing, or no screen is left.
        It has no public method to override.
        """
        is_ending = self.return_code is not None or not self.is_running
        cause = error.error if isinstance(error, WorkerFailed) else error
        if not (is_ending and isinstance(cause, (NoMatches, ScreenStackError))):
            super()._handle_exception(error)

    def _begin_with(self, theme: str) -> None:
        """Choose a theme before the CSS is read; Textual's watcher would have it read twice."""
        self._knows_theme = True
        self.set_reactive(App.theme, theme)
        is_dark = self.current_theme.dark
        classes = {f"-theme-{theme}": True, "-dark-mode": is_dark, "-light-mode": not is_dark}
        self.update_classes(classes, update=False)
        self._refresh_truecolor_filter(self.ansi_theme)
        self.stylesheet.set_variables(self.get_css_variables())

    @property
    def controller(self) -> "Controller":
        """Handles what the user does, once the conversation is loaded."""
        assert self.loaded is not None
        return self.loaded.controller

    @property
    def view(self) -> "EventView":
        """What shows the conversation, once it is loaded."""
        assert self.loaded is not None
        return self.loaded.view

    @property
    def runtime(self) -> "AgentRuntime":
        """The conversation, once it is loaded."""
        return self.controller.options.runtime

    # First paint, start and end

    def compose(self) -> ComposeResult:
        """The chat comes into the empty space once it is loaded."""
        yield Vertical(id="upper")
        yield self.prompt
        yield self.status

    def on_mount(self) -> None:
        """Take keys at once; everything that takes time comes after the first paint."""
        self.prompt.focus()
        leave_on_signals(self)
        self.window.terminal.enter()
        if self._theme_to_mend:
            self.write_to_terminal(ASK_BACKGROUND)
        self.call_after_refresh(lambda: self.run_worker(self._bring_up(), group="start"))

    async def _bring_up(self) -> None:
        """Load the conversation in a thread, put the chat on the screen and begin."""
        self.stylesheet.read(_CHAT_CSS)
        try:
            if self._before_loading is not None:
                await self._before_loading(self.window)
            options = await asyncio.to_thread(_load_with_imports, self._load)
        except AgentTuiError as error:
            self.exit(UiOutcome(error=error))
            return
        from agent_tui.ui.assembly import assemble

        loaded = assemble(self.window, self.status, options)
        await self.query_one("#upper").mount_all(loaded.view.widgets.above_prompt)
        self.loaded = loaded  # no sooner: the transcript is drawn anew by `begin`, without notices
        self.prompt.attach(loaded.sources)
        warnings = self._use_loaded_settings(options)
        loaded.view.refresh_status()
        await loaded.controller.begin(warnings)
        if not (options.resume or options.opens_picker):
            await loaded.drafts.restore(of_folder=True)
        loaded.drafts.note_change()
        if not self.is_headless:
            # Everything here stays to the end. Scanning it for cycles again and again would stop
            # the program for 0.2 s each time, with a long session on the screen.
            gc.freeze()
            gc.enable()  # `cli.main` disabled it
            return_free_memory()
        self._submit_early(loaded.controller)

    def _use_loaded_settings(self, options: "UiOptions") -> tuple[str, ...]:
        """Apply project settings, unknown at the first paint; returns what is wrong with them."""
        self.window.terminal.set_mouse(options.settings.mouse)
        self.use_keys(options.settings.keys.key_map)
        self.prompt.use_modes(options.settings)
        if not (theme := options.settings.theme):
            return ()
        self._theme_to_mend = ""
        self.theme = theme_or_default(theme, frozenset(self.available_themes))
        if theme in self.available_themes:
            return ()
        return (f"No theme is named {theme}. /theme lists them.",)

    def _submit_early(self, controller: "Controller") -> None:
        """Submit what was sent before loading; unknown commands return to the prompt."""
        while self._early_drafts:
            draft = self._early_drafts.pop(0)
            if reason := controller.registry.refusal(draft.text):
                self.prompt.put_before((draft,))
                self.notify(reason, severity="warning")
            else:
                controller.submit(draft)

    async def on_unmount(self) -> None:
        """Let the running turn record what it has, then close the session."""
        self.window.terminal.leave()
        if self.loaded is not None:
            await self.loaded.controller.aclose()

    # The terminal

    def get_driver_class(self) -> type[Driver]:
        """The driver of this platform; on Linux, one that reads the terminal our way."""
        usual = super().get_driver_class()
        return TerminalDriver if usual is LinuxDriver else usual

    def get_css_variables(self) -> dict[str, str]:
        """The theme's colours, with text that can be read; none until the theme is known."""
        if not self._knows_theme:
            return {}
        self.theme_variables = legible_variables(super().get_css_variables())
        return self.theme_variables

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Filters for every row sent to the terminal; with ``NO_COLOR``, without Textual's."""
        filters = super().get_line_filters()
        if not self.no_color:
            return filters
        kept = (one for one in filters if not isinstance(one, Monochrome | NoColor))
        return (*kept, _WITHOUT_COLOURS)

    def write_to_terminal(self, sequence: str) -> None:
        """Send a control sequence to the terminal, if there is one."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def action_suspend_process(self) -> None:
        """Ctrl+Z: give the terminal back to the shell; draw everything again afterwards."""
        self.window.terminal.leave()
        super().action_suspend_process()
        self.screen.refresh()

    @on(BackgroundTold)
    def _background_told(self, event: BackgroundTold) -> None:
        """Use the theme for the terminal, unless another was chosen."""
        if self.theme == self._theme_to_mend:
            self.theme = LIGHT if event.is_light else DARK
        self._theme_to_mend = ""

    @on(Driver.SignalResume)
    def _terminal_is_back(self) -> None:
        self.window.terminal.enter()

    @contextmanager
    def suspend(self) -> Generator[None]:
        """Release the terminal to another program inside a ``with`` block.

        Textual takes it back only if the block raises nothing, so it never sees what that raises.
        """
        with ExitStack() as stack:
            self.window.terminal.leave()
            stack.callback(self.window.terminal.enter)
            suspension = super().suspend()
            suspension.__enter__()
            stack.callback(suspension.__exit__, None, None, None)
            yield

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show `message` for a while; it may contain anything, so markup is off by default."""
        super().notify(
            safe_text(message),
            title=safe_text(title, keep_newlines=False),
            severity=severity,
            timeout=timeout,
            markup=markup,
        )

    def _fatal_error(self) -> None:
        """Exit after a fault of ours, without Textual's dump of all variables' values."""
        self.panic(crash_report(sys.exception()))

    # Messages of the prompt

    @on(Prompt.Submitted)
    def _take_draft(self, event: Prompt.Submitted) -> None:
        if self.loaded is None or self._early_drafts:  # in the order in which they were sent
            self._early_drafts.append(event.draft)
        else:
            self.loaded.controller.submit(event.draft)

    @on(Prompt.Refused)
    def _show_refusal(self, event: Prompt.Refused) -> None:
        self.notify(event.reason, severity="warning")

    @on(Prompt.HistoryWanted)
    def _history_wanted(self, event: Prompt.HistoryWanted) -> None:
        self.run_worker(self._search_history(event), group="history")

    async def _search_history(self, event: Prompt.HistoryWanted) -> None:
        from agent_tui.ui.screens.listing import HistoryPicker

        self.prompt.go_back_to(await self.window.ask(HistoryPicker(event.drafts)))

    @on(Prompt.NoImage)
    def _no_image(self) -> None:
        """Paste the text copied in this program, if any."""
        if self.clipboard:
            self.prompt.area.post_message(textual_events.Paste(self.clipboard))
        else:
            self.notify(_NO_IMAGE, severity="warning")

    @on(Prompt.HelpWanted)
    def _help_wanted(self) -> None:
        if self.loaded is not None:
            self.loaded.controller.dispatch("/help")

    @on(Prompt.Typed)
    def _note_typing(self) -> None:
        if self.loaded is not None:
            self.loaded.controller.note_typing()
            self.loaded.view.person_typed()
            self.loaded.drafts.note_change()

    # Messages of widgets that are not imported before the first paint, bound by their names

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Keep what is written in the field of a question, as the draft is kept."""
        from agent_tui.ui.lines_field import LinesField

        if self.loaded and self.prompt.is_running and isinstance(event.text_area, LinesField):
            self.loaded.drafts.note_answer(event.text_area)

    def on_approval_panel_answered(self, event: "ApprovalPanel.Answered") -> None:
        """The user answered."""
        self.view.person_acted()
        self.prompt.area.note_answer(event.key)
        if event.answer.choice == "no":
            self.view.hold_reason(event.request_id, event.reason)
        elif not event.reason.is_empty:
            self.controller.comment(event.reason)
        self.controller.answer_approval(event.request_id, event.answer)
        if not self.controller.turns.is_running:
            self.view.give_back_reasons()

    def on_approval_panel_plan_to_edit(self, event: "ApprovalPanel.PlanToEdit") -> None:
        """Let the user edit a plan before they decide on it."""
        from agent_tui.ui.window import edit_text

        plan = edit_text(self, event.plan)
        if plan is not None:
            self.view.widgets.approval.change_plan(plan)

    async def on_approval_panel_key_for_prompt(self, event: "ApprovalPanel.KeyForPrompt") -> None:
        """Edit the draft while a question is open."""
        self.prompt.focus()
        await self.prompt.area.take(event.event)

    def on_approval_panel_send_wanted(self) -> None:
        """Send what was typed while a question was open; the question stays."""
        self.prompt.focus()
        self.prompt.send()

    def on_approval_panel_closed(self) -> None:
        """Return the focus to the prompt after the last question, unless a bar has it."""
        if not self.query("ChatBar:focus-within"):
            self.prompt.focus()

    def on_transcript_start_chosen(self, event: "Transcript.StartChosen") -> None:
        """Run a command chosen in an empty chat; put other text into the prompt."""
        if event.draft.startswith("/"):
            self.controller.dispatch(event.draft)
        else:
            self.prompt.take(event.draft)

    def on_stack_view_follow_changed(self, event: "Transcript.FollowChanged") -> None:
        """Say that there is more below while the user reads above."""
        news = f"↓ {event.new_count} new" if event.new_count else "↓ more"
        below = " · ".join(filter(None, (news, keys_in_force().first_key("last_message"))))
        self.view.widgets.activity.show_below("" if event.following else below)
        if event.following:
            self.view.earlier.let_go()

    def on_stack_view_earlier_wanted(self) -> None:
        """Load the messages from before a compaction."""
        self.run_worker(self.view.earlier.load(), group="earlier")

    # Events of the terminal

    def on_paste(self, event: textual_events.Paste) -> None:
        """Paste into the prompt if no text field has the focus, or say that nothing takes it."""
        if len(self.screen_stack) == 1:
            self.prompt.focus()
            self.window.start_work(self.window.place_paste(event.text))
        else:
            self.notify("Nothing here takes pasted text.", severity="warning")

    def on_key(self, event: textual_events.Key) -> None:
        """Return keys to the prompt if a click took the focus from everything."""
        if self.focused is None and len(self.screen_stack) == 1:
            self.prompt.focus()
            if event.is_printable and event.character:
                self.prompt.area.insert(event.character)

    def on_app_focus(self, _event: textual_events.AppFocus) -> None:
        """Note that the terminal has the focus again."""
        if self.loaded is not None:
            self.loaded.view.focus_changed(True)

    def on_app_blur(self, _event: textual_events.AppBlur) -> None:
        """Note that the terminal has lost the focus."""
        if self.loaded is not None:
            self.loaded.view.focus_changed(False)

    # Keys

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        """Run what `key` is bound to; nothing for a letter that the prompt writes.

        Textual would copy all maps of bindings for each letter, to find the same.
        """
        if self.focused is self.prompt.area and self.prompt.area.writes(key):
            return False
        return await super()._check_bindings(key, priority)

    def use_keys(self, keys: KeyMap) -> None:
        """Use `keys` here, in the prompt and in texts from now on."""
        use_keys(keys)
        self._bindings = BindingsMap(bind_keys(APP_BINDINGS, keys))
        self.prompt.area.use_keys(keys)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable keys of the chat before it exists and while a screen covers it."""
        if self.loaded is None:
            return action not in NEED_THE_CHAT
        return not (action in NOT_OVER_SCREENS and len(self.screen_stack) > 1)

    def _note_left_screen(self) -> None:
        if self.loaded is not None:
            self.loaded.controller.note_screen_left()

    def action_interrupt(self) -> None:
        """Esc: close a bar, else stop what runs, else go back in the chat the second time."""
        from agent_tui.ui.chat.bar import close_bar

        if close_bar(self):
            self.controller.note_typing()
        else:
            self.controller.interrupt()

    def on_text_selected(self) -> None:
        """Say once which key copies what the mouse selected."""
        if self._knows_how_to_copy or not self.screen.get_selected_text():
            return
        self._knows_how_to_copy = True
        self.notify(f"{keys_in_force().first_key('clear_or_leave')} copies the selection.")

    def action_clear_or_leave(self) -> None:
        """Ctrl+C: copy a selection, clear the prompt, or stop what runs; the second press exits.

        Keys typed before it come first: an Enter sends its message, and this stops the turn.
        """
        if len(self.screen_stack) == 1:
            self.prompt.area.call_later(self.prompt.post_message, Prompt.KeysTaken())
        else:
            self._clear_or_leave()

    @on(Prompt.KeysTaken)
    def _clear_or_leave(self) -> None:
        if selected := self.screen.get_selected_text():
            from agent_tui.ui.terminal.clipboard import copy_text

            self.notify(copy_text(selected, os.environ, self.copy_to_clipboard))
            self.screen.clear_selection()
            return
        key = keys_in_force().first_key("clear_or_leave")
        if self.prompt.area.text and len(self.screen_stack) == 1 and not self._is_asking:
            self._leaves_until = float("-inf")
            self._clear_prompt()
            if self.loaded is not None and self.controller.turns.is_running:
                self.notify(f"Press {key} again to stop what runs.")
            return
        if self.loaded is not None and self.controller.stop():
            self._leaves_until = float("-inf")
            return
        now = self.loaded.controller.options.clock() if self.loaded else time.monotonic()
        if now <= self._leaves_until:
            self.exit(UiOutcome())
            return
        self._leaves_until = now + _LEAVE_WITHIN_S
        self.notify(f"Press {key} again to leave.", timeout=_LEAVE_WITHIN_S)

    @property
    def _is_asking(self) -> bool:
        """Whether a question stands in place of the prompt."""
        return self.loaded is not None and bool(self.view.widgets.approval.display)

    def _clear_prompt(self) -> None:
        if self.loaded is None:
            self.prompt.clear()
        else:
            self.loaded.view.clear_prompt()

    def action_leave_if_empty(self) -> None:
        """Ctrl+D: exit if the prompt is empty, else delete to the right."""
        if self.prompt.area.text:
            self.prompt.area.action_delete_right()
        else:
            self.controller.front.leave()

    def action_next_permission_mode(self) -> None:
        """Shift+Tab: the next mode in turn; at a question about an edit, yes to all edits."""
        if not self.view.widgets.approval.accept_edits():
            self.controller.next_permission_mode()

    def action_move_to_background(self) -> None:
        """Ctrl+B: the running command becomes a job."""
        self.controller.dispatch("/background")

    def action_take_back_queue(self) -> None:
        """Alt+Up: return queued messages to the prompt."""
        self.controller.turns.take_back_queue()

    def action_switch_mouse(self) -> None:
        """Alt+M: leave the mouse to the terminal, or take it back."""
        self.controller.dispatch("/mouse")

    def action_toggle_details(self) -> None:
        """Ctrl+O: unfold or fold all tool output and summaries."""
        self.view.widgets.transcript.toggle_details()

    def action_toggle_thinking(self) -> None:
        """Ctrl+T: show or hide thinking."""
        transcript = self.view.widgets.transcript
        transcript.show_thinking = not transcript.show_thinking

    def action_scroll_chat(self, pages: int) -> None:
        """Page through the chat from the prompt."""
        if pages < 0:
            self.view.widgets.transcript.action_page_up()
        else:
            self.view.widgets.transcript.action_page_down()

    def action_chat_home(self) -> None:
        """To the first message."""
        self.view.widgets.transcript.scroll_home(animate=False)

    def action_chat_end(self) -> None:
        """To the newest message."""
        self.view.follow_end()

    async def action_find(self) -> None:
        """Ctrl+F: search the chat."""
        await self.controller.call("/find")

    def action_edit_outside(self) -> None:
        """Ctrl+G: write the prompt in $EDITOR, or the plan that keys answer now."""
        if self.view.widgets.approval.asks_about_plan:
            self.view.widgets.approval.edit_plan()
            return
        from agent_tui.ui.window import edit_outside

        edit_outside(self, self.prompt)

    def action_open_palette(self) -> None:
        """Ctrl+P: find a command or an action."""
        self.run_worker(self._do_from_palette(), group="palette", exclusive=True)

    async def _do_from_palette(self) -> None:
        from agent_tui.commands.core.command import Command
        from agent_tui.ui.screens.listing import CommandPalette

        actions = [entry for entry in APP_BINDINGS if entry.show]
        palette = CommandPalette(self.controller.registry.commands, actions, keys_in_force())
        match await self.window.ask(palette):
            case Command() as command if command.needs_argument:
                self.view.edit_again(f"/{command.name} ")
            case Command() as command:
                self.controller.dispatch(f"/{command.name}")
            case Binding() as binding:
                await self.run_action(binding.action)
            case None:
                pass


def _load_with_imports(load: "Callable[[], UiOptions]") -> "UiOptions":
    """Run `load`, and import what the screen will need in the same thread."""
    import agent_tui.ui.assembly as _assembly

    assert _assembly
    return load()
