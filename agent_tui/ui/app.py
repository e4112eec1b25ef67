"""The program on the screen: composition, keys, and what commands may use of it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import events as textual_events
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from agent_tui.tools.walk import project_files
from agent_tui.ui.activity_line import ActivityLine
from agent_tui.ui.app_host import AppHost
from agent_tui.ui.approval_panel import ApprovalPanel
from agent_tui.ui.commands import built_in_commands, split_command
from agent_tui.ui.commands.talking import PERMISSION_MODES
from agent_tui.ui.event_view import EventView, ViewParts
from agent_tui.ui.options import UiOptions, UiOutcome
from agent_tui.ui.plan_view import PlanView
from agent_tui.ui.prompt import Draft, Prompt, PromptHistory
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.prompt.prompt import PromptSources
from agent_tui.ui.queue_view import QueueView
from agent_tui.ui.start import begin, choose_model, welcome_block
from agent_tui.ui.status_bar import StatusBar
from agent_tui.ui.status_fields import StatusSource
from agent_tui.ui.terminal import RESTORE_TITLE, SAVE_TITLE, leave_on_signals, title_sequence
from agent_tui.ui.theme import own_themes, wanted_theme
from agent_tui.ui.transcript import Transcript
from agent_tui.ui.turn_driver import DriverHooks, TurnDriver

if TYPE_CHECKING:
    from agent_tui.agent.runtime import AgentRuntime

ResultT = TypeVar("ResultT")

WIDTH_CLASSES = ((0, "-narrow"), (90, "-wide"))
HEIGHT_CLASSES = ((0, "-short"), (30, "-tall"))
LEAVE_WITHIN_S = 1.5
"""A second Ctrl+C within this time leaves."""


class AgentApp(App[UiOutcome]):
    """The chat, the prompt and the status bar over one `AgentRuntime`.

    Args:
        options: Everything it is built from; see `UiOptions`. Run it with
            `agent_tui.ui.terminal.run_ui`.
    """

    CSS_PATH = "app.tcss"
    TITLE = "agent-tui"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "interrupt", "Stop"),
        Binding("ctrl+c", "clear_or_leave", "Clear, twice: leave", priority=True),
        Binding("ctrl+d", "leave_if_empty", "Leave", priority=True),
        Binding("ctrl+q", "quit", "Leave", show=False),
        Binding("ctrl+z", "suspend_process", "Suspend", priority=True),
        Binding("shift+tab", "next_permission_mode", "Permission mode", priority=True),
        Binding("ctrl+o", "toggle_tools", "Tool output"),
        Binding("ctrl+t", "toggle_thinking", "Thinking"),
        Binding("ctrl+g", "edit_outside", "Editor"),
        Binding("alt+up", "take_back_queue", "Take back"),
        Binding("pageup", "scroll_chat(-1)", "Page up", priority=True),
        Binding("pagedown", "scroll_chat(1)", "Page down", priority=True),
        Binding("ctrl+home", "chat_home", "First message", priority=True),
        Binding("ctrl+end,ctrl+l", "chat_end", "Newest message", priority=True),
    ]
    _CHAT_ONLY = frozenset(
        {"leave_if_empty", "next_permission_mode", "scroll_chat", "chat_home", "chat_end"}
    )

    def __init__(self, options: UiOptions) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = list(WIDTH_CLASSES)
        self.VERTICAL_BREAKPOINTS = list(HEIGHT_CLASSES)
        for theme in own_themes():
            self.register_theme(theme)
        self.theme = wanted_theme(options.settings.theme, frozenset(self.available_themes))
        self.options = options
        self.registry = built_in_commands()
        self._cleared_at: float | None = None
        self.files = FileIndex(options.runtime.cwd, project_files, options.clock)
        self.history = PromptHistory(options.history_file)
        self.chat = Transcript()
        self.approval = ApprovalPanel(options.approval_quiet_s)
        self.plan = PlanView()
        self.queue_view = QueueView()
        self.activity = ActivityLine(options.clock)
        self.prompt = Prompt(PromptSources(self.registry, self._choices, self.files, self.history))
        self.status_source = StatusSource(options)
        self.status = StatusBar(self.status_source.fields())
        parts = ViewParts(
            chat=self.chat,
            activity=self.activity,
            approval=self.approval,
            queue=self.queue_view,
            plan=self.plan,
            status_changed=self.refresh_status,
            attention=self._call_for_attention,
            welcome=lambda: welcome_block(options),
        )
        self.view = EventView(parts, options.runtime, options.clock)
        hooks = DriverHooks(
            start_work=lambda work: self.run_worker(work, group="activity", exit_on_error=True),
            give_back=self.prompt.put_before,
        )
        self.turns = TurnDriver(options.runtime, self.view, hooks)
        self.host = AppHost(self)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self.chat
        yield self.plan
        yield self.approval
        yield self.queue_view
        yield self.activity
        yield self.prompt
        yield self.status

    def on_mount(self) -> None:
        """Take keys at once; everything that takes time comes after the first paint."""
        self.prompt.focus()
        leave_on_signals(self)
        self._write(SAVE_TITLE)
        self.call_after_refresh(lambda: self.run_worker(begin(self), group="start"))

    async def on_unmount(self) -> None:
        """Let the running turn record what it has, then close the session."""
        self._write(RESTORE_TITLE)
        await self.turns.stop()
        await self.files.aclose()
        await self.runtime.aclose()
        await self.options.close()

    @property
    def runtime(self) -> "AgentRuntime":
        """The conversation."""
        return self.options.runtime

    # Messages of the widgets

    @on(Prompt.Submitted)
    def _submitted(self, event: Prompt.Submitted) -> None:
        self._remember(event.draft)
        self.dispatch(event.draft.full_text)

    def dispatch(self, text: str) -> None:
        """Run a command, a shell command, or send a message."""
        name, argument = split_command(text)
        if name and (command := self.registry.find(name)) is not None:
            if command.refusal and self.turns.is_running:
                self.host.say(command.refusal, "warning")
            else:
                self.run_worker(command.run(self.host, argument), group="command")
        elif text.startswith("!") and text.strip("! \n"):
            in_context = not text.startswith("!!")
            line = text.lstrip("!").strip()
            self.turns.start(self.runtime.run_bash(line, in_context=in_context))
        elif self.runtime.model.name:
            self.turns.send(text)
        else:
            self.prompt.put_before((text,))
            self.run_worker(choose_model(self), group="command")

    def _remember(self, draft: Draft) -> None:
        try:
            self.prompt.remember(draft)
        except OSError as error:
            self.host.say(f"The prompt history cannot be written: {error.strerror}.", "warning")

    @on(Prompt.Refused)
    def _refused(self, event: Prompt.Refused) -> None:
        self.notify(event.reason, severity="warning", markup=False)

    @on(Prompt.Typed)
    def _typed(self) -> None:
        self.approval.postpone()

    @on(ApprovalPanel.Answered)
    def _answered(self, event: ApprovalPanel.Answered) -> None:
        self.runtime.answer_approval(event.request_id, event.answer)

    @on(ApprovalPanel.Strayed)
    def _strayed(self, event: ApprovalPanel.Strayed) -> None:
        self.prompt.focus()
        self.prompt.area.insert(event.character)

    @on(ApprovalPanel.Closed)
    def _approval_closed(self) -> None:
        self.prompt.focus()

    @on(Transcript.FollowChanged)
    def _follow_changed(self, event: Transcript.FollowChanged) -> None:
        below = f"↓ {event.new_count} new · ctrl+l" if event.new_count else "↓ more · ctrl+l"
        self.activity.show_below("" if event.following else below)

    def on_app_focus(self, _event: textual_events.AppFocus) -> None:
        """The terminal is looked at again: keys and clicks of that moment answer nothing."""
        self.approval.expect_stray_click()

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the chat do nothing while another screen lies above it."""
        return not (action in self._CHAT_ONLY and len(self.screen_stack) > 1)

    def action_interrupt(self) -> None:
        """Esc: stop what runs."""
        self.turns.interrupt()

    def action_clear_or_leave(self) -> None:
        """Ctrl+C: copy a selection, else clear the prompt, else leave the second time."""
        if selected := self.screen.get_selected_text():
            self.notify(self.host.copy(selected), markup=False)
            self.screen.clear_selection()
            return
        now = self.options.clock()
        if self._cleared_at is not None and now - self._cleared_at <= LEAVE_WITHIN_S:
            self.exit(UiOutcome())
            return
        self._cleared_at = now
        self.prompt.clear()
        self.notify("Press Ctrl+C again to leave.", timeout=LEAVE_WITHIN_S)

    def action_leave_if_empty(self) -> None:
        """Ctrl+D: leave if nothing is written, else delete to the right."""
        if self.prompt.area.text:
            self.prompt.area.action_delete_right()
        else:
            self.host.leave()

    def action_next_permission_mode(self) -> None:
        """Shift+Tab: the next mode in turn."""
        place = PERMISSION_MODES.index(self.runtime.permission_mode)
        self.runtime.set_permission_mode(PERMISSION_MODES[(place + 1) % len(PERMISSION_MODES)])
        self.refresh_status()

    def action_toggle_tools(self) -> None:
        """Ctrl+O: unfold or fold all tool output."""
        self.chat.toggle_all_tools()

    def action_toggle_thinking(self) -> None:
        """Ctrl+T: show or hide thinking."""
        self.chat.show_thinking = not self.chat.show_thinking

    def action_take_back_queue(self) -> None:
        """Alt+Up: queued messages come back into the prompt."""
        self.turns.take_back_queue()

    def action_scroll_chat(self, pages: int) -> None:
        """Page through the chat from the prompt."""
        if pages < 0:
            self.chat.action_page_up()
        else:
            self.chat.action_page_down()

    def action_chat_home(self) -> None:
        """To the first message."""
        self.chat.scroll_home(animate=False)

    def action_chat_end(self) -> None:
        """To the newest message."""
        self.chat.follow_end()

    def action_edit_outside(self) -> None:
        """Ctrl+G: write the prompt in $EDITOR."""
        from agent_tui.ui.prompt.editor import edit_outside

        edit_outside(self, self.prompt)

    # Status

    def refresh_status(self) -> None:
        """Bring the status bar, the prompt's frame and the terminal's title up to date."""
        fields = self.status_source.fields()
        self.status.show(fields)
        self.prompt.set_class(fields.mode == "plan", "-plan")
        self._write(title_sequence(f"agent-tui · {fields.name or fields.folder}"))

    def _choices(self, name: str) -> Iterable[str]:
        command = self.registry.find(name)
        return command.choices(self.host) if command is not None and command.choices else ()

    def _call_for_attention(self) -> None:
        if not self.app_focus:
            self.bell()

    def _write(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)
