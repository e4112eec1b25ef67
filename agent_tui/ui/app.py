"""The program on the screen: the first paint, keys, and where messages of widgets go.

Only the prompt and the status bar belong to the first paint, so this module and what it imports
stay light (no pydantic, no conversation). Everything else is built in a thread and attached.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events as textual_events
from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.notifications import SeverityLevel

from agent_tui.errors import AgentTuiError
from agent_tui.ui.commands.registry import split_command
from agent_tui.ui.keys import APP_BINDINGS, NEED_THE_CHAT, NOT_OVER_SCREENS
from agent_tui.ui.outcome import UiOutcome
from agent_tui.ui.prompt.pastes import Draft
from agent_tui.ui.prompt.prompt import Prompt
from agent_tui.ui.sanitise import safe_text
from agent_tui.ui.status_bar import StatusBar
from agent_tui.ui.terminal import (
    RESTORE_TITLE,
    SAVE_TITLE,
    crash_report,
    leave_on_signals,
    title_sequence,
)
from agent_tui.ui.theme import own_themes, wanted_theme

if TYPE_CHECKING:
    from agent_tui.agent.runtime import AgentRuntime
    from agent_tui.ui.approval_panel import ApprovalPanel
    from agent_tui.ui.commands.registry import Command
    from agent_tui.ui.options import UiOptions
    from agent_tui.ui.parts import Parts
    from agent_tui.ui.transcript import Transcript

WIDTH_CLASSES = ((0, "-narrow"), (90, "-wide"))
HEIGHT_CLASSES = ((0, "-short"), (30, "-tall"))
LEAVE_WITHIN_S = 1.5
"""A second Ctrl+C within this time leaves."""
GO_BACK_WITHIN_S = 0.6
"""A second Esc within this time shows what one can go back to."""


class AgentApp(App[UiOutcome]):
    """The chat, the prompt and the status bar over one `AgentRuntime`.

    Args:
        load: Builds everything it works on, see `UiOptions`; called in a thread after the
            first paint. Run the app with `agent_tui.ui.terminal.run_ui`.
        theme: Name of the theme; empty for the default.
        folder: Shown until the conversation is loaded.
        before_loading: Asks what has to be known before `load`, on the event loop; an
            `AgentTuiError` of either ends the app.
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
        before_loading: "Callable[[AgentApp], Awaitable[None]] | None" = None,
    ) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = list(WIDTH_CLASSES)
        self.VERTICAL_BREAKPOINTS = list(HEIGHT_CLASSES)
        for own_theme in own_themes():
            self.register_theme(own_theme)
        self.theme = wanted_theme(theme, frozenset(self.available_themes))
        self._load = load
        self._before_loading = before_loading
        self._cleared_at: float | None = None
        self._escaped_at: float | None = None
        self._early_drafts: list[Draft] = []
        self.parts: Parts | None = None
        self.prompt = Prompt()
        self.status = StatusBar(folder)

    def compose(self) -> ComposeResult:
        """The chat comes into the empty space once it is loaded."""
        yield Vertical(id="upper")
        yield self.prompt
        yield self.status

    def on_mount(self) -> None:
        """Take keys at once; everything that takes time comes after the first paint."""
        self.prompt.focus()
        leave_on_signals(self)
        self._write(SAVE_TITLE)
        self.call_after_refresh(lambda: self.run_worker(self._bring_up(), group="start"))

    async def _bring_up(self) -> None:
        """Load the conversation in a thread, put the chat on the screen and begin."""
        try:
            if self._before_loading is not None:
                await self._before_loading(self)
            options = await asyncio.to_thread(_load_with_imports, self._load)
        except AgentTuiError as error:
            self.exit(UiOutcome(error=error))
            return
        from agent_tui.ui.parts import build_parts, prompt_sources
        from agent_tui.ui.start import begin, send_early

        self.parts = parts = build_parts(self, options)
        await self.query_one("#upper").mount_all(parts.widgets)
        self.prompt.attach(prompt_sources(parts))
        self.refresh_status()
        await begin(self)
        send_early(self, self._early_drafts)

    async def on_unmount(self) -> None:
        """Let the running turn record what it has, then close the session."""
        self._write(RESTORE_TITLE)
        if self.parts is not None:
            await self.parts.turns.stop()
            await self.parts.files.aclose()
            await self.runtime.aclose()
            await self.parts.options.close()

    @property
    def ready(self) -> "Parts":
        """The parts, once they are there."""
        assert self.parts is not None
        return self.parts

    @property
    def runtime(self) -> "AgentRuntime":
        """The conversation, once it is there."""
        return self.ready.options.runtime

    # Messages of the widgets

    @on(Prompt.Submitted)
    def _submitted(self, event: Prompt.Submitted) -> None:
        if self.parts is None:
            self._early_drafts.append(event.draft)
        else:
            self.take(event.draft)

    def take(self, draft: Draft) -> None:
        """Remember and dispatch what was sent."""
        self._remember(draft)
        self.dispatch(draft.full_text)

    def dispatch(self, text: str) -> None:
        """Run a command, a shell command, or send a message."""
        name, argument = split_command(text)
        if name and (command := self.ready.registry.find(name)) is not None:
            refusal = command.refusal_of(argument)
            if refusal and self.ready.turns.is_running:
                self.ready.host.say(refusal, "warning")
            else:
                self.run_worker(self._run(command, argument), group="command")
        elif text.strip("! \n") and self.runtime.log.is_read_only:
            self.prompt.put_before((text,))
            self.ready.host.say(
                "This session is open read-only. /fork goes on in a copy of it.", "warning"
            )
        elif text.startswith("!") and text.strip("! \n"):
            in_context = not text.startswith("!!")
            line = text.lstrip("!").strip()
            self.ready.turns.start(self.runtime.run_bash(line, in_context=in_context))
        elif self.runtime.model.name:
            self.ready.turns.send(text)
        else:
            self.prompt.put_before((text,))
            from agent_tui.ui.start import choose_model

            self.run_worker(choose_model(self), group="command")

    async def _run(self, command: "Command", argument: str) -> None:
        try:
            await command.run(self.ready.host, argument)
        except AgentTuiError as error:
            self.ready.host.say(str(error), "error")

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
            self.ready.host.say(
                f"The prompt history cannot be written: {error.strerror}.", "warning"
            )

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show `message` for a while; it may hold anything, so it is no markup unless said."""
        super().notify(
            safe_text(message),
            title=safe_text(title, keep_newlines=False),
            severity=severity,
            timeout=timeout,
            markup=markup,
        )

    def _fatal_error(self) -> None:
        """Leave over a fault of ours, without what Textual adds: the values of all variables."""
        self.panic(crash_report(sys.exception()))

    @on(Prompt.Refused)
    def _refused(self, event: Prompt.Refused) -> None:
        self.notify(event.reason, severity="warning", markup=False)

    @on(Prompt.HistoryWanted)
    def _history_wanted(self, event: Prompt.HistoryWanted) -> None:
        from agent_tui.ui.screens.history_picker import HistoryPicker

        self.push_screen(HistoryPicker(event.drafts), self.prompt.go_back_to)

    @on(Prompt.Typed)
    def _typed(self) -> None:
        self._escaped_at = None
        if self.parts is not None:
            self.parts.approval.postpone()

    # These are bound by name: their widgets are not imported before the first paint.

    def on_approval_panel_answered(self, event: "ApprovalPanel.Answered") -> None:
        """The person answered."""
        self.runtime.answer_approval(event.request_id, event.answer)

    def on_approval_panel_strayed(self, event: "ApprovalPanel.Strayed") -> None:
        """A letter that answers nothing belongs to the draft."""
        self.prompt.focus()
        self.prompt.area.insert(event.character)

    def on_approval_panel_closed(self) -> None:
        """Nothing is asked any more."""
        self.prompt.focus()

    def on_transcript_follow_changed(self, event: "Transcript.FollowChanged") -> None:
        """Say that there is more below while the person reads above."""
        below = f"↓ {event.new_count} new · ctrl+l" if event.new_count else "↓ more · ctrl+l"
        self.ready.activity.show_below("" if event.following else below)

    def on_app_focus(self, _event: textual_events.AppFocus) -> None:
        """The terminal is looked at again: keys and clicks of that moment answer nothing."""
        if self.parts is not None:
            self.parts.approval.expect_stray_click()

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the chat do nothing before it is there or while a screen lies above it."""
        if self.parts is None:
            return action not in NEED_THE_CHAT
        return not (action in NOT_OVER_SCREENS and len(self.screen_stack) > 1)

    def action_interrupt(self) -> None:
        """Esc: stop what runs; twice while nothing does: what one can go back to."""
        before, self._escaped_at = self._escaped_at, None
        if self.ready.turns.interrupt() or not self.runtime.log.entries:
            return
        now = self.ready.options.clock()
        if before is not None and now - before <= GO_BACK_WITHIN_S:
            self.dispatch("/tree")
        else:
            self._escaped_at = now

    def action_clear_or_leave(self) -> None:
        """Ctrl+C: copy a selection, else clear the prompt, else leave the second time."""
        if selected := self.screen.get_selected_text():
            self.notify(self.ready.host.copy(selected), markup=False)
            self.screen.clear_selection()
            return
        now = self.parts.options.clock() if self.parts is not None else time.monotonic()
        if self._cleared_at is not None and now - self._cleared_at <= LEAVE_WITHIN_S:
            self.exit(UiOutcome())
            return
        self._cleared_at = now
        self.prompt.clear()
        self.notify("Press Ctrl+C again to leave.", timeout=LEAVE_WITHIN_S)

    def action_suspend_process(self) -> None:
        """Ctrl+Z: give the terminal back to the shell; draw everything again afterwards."""
        super().action_suspend_process()
        self.screen.refresh()

    def action_leave_if_empty(self) -> None:
        """Ctrl+D: leave if nothing is written, else delete to the right."""
        if self.prompt.area.text:
            self.prompt.area.action_delete_right()
        else:
            self.ready.host.leave()

    def action_next_permission_mode(self) -> None:
        """Shift+Tab: the next mode in turn."""
        from agent_tui.ui.commands.talking import PERMISSION_MODES

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

    def action_edit_outside(self) -> None:
        """Ctrl+G: write the prompt in $EDITOR."""
        from agent_tui.ui.prompt.editor import edit_outside

        edit_outside(self, self.prompt)

    # Status

    def refresh_status(self) -> None:
        """Bring the status bar, the prompt's frame and the terminal's title up to date."""
        fields = self.ready.status.fields()
        self.status.show(fields)
        self.prompt.set_class(fields.mode == "plan", "-plan")
        self._write(title_sequence(f"agent-tui · {fields.name or fields.folder}"))

    def call_for_attention(self) -> None:
        """Ring the bell if nobody looks at the terminal."""
        if not self.app_focus:
            self.bell()

    def _write(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)


def _load_with_imports(load: "Callable[[], UiOptions]") -> "UiOptions":
    """`load`, and the import of what will be put on the screen, both in this thread."""
    import agent_tui.ui.parts as _parts

    assert _parts
    return load()
