"""The program on the screen: the first paint, keys, and where messages of widgets go.

Only the prompt and the status bar belong to the first paint, so this module and what it imports
stay light (no pydantic, no conversation). Everything else is built in a thread and attached.
"""

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from textual import events as textual_events
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.notifications import SeverityLevel

from agent_tui.errors import AgentTuiError
from agent_tui.ui.breakpoints import HEIGHT_CLASSES, WIDTH_CLASSES, size_classes
from agent_tui.ui.chat_app import ChatApp
from agent_tui.ui.outcome import UiOutcome
from agent_tui.ui.prompt.pastes import Draft
from agent_tui.ui.prompt.prompt import Prompt
from agent_tui.ui.sanitise import safe_text
from agent_tui.ui.terminal import crash_report, leave_on_signals
from agent_tui.ui.terminal_input import TerminalDriver
from agent_tui.ui.theme import own_themes, wanted_theme

if TYPE_CHECKING:
    from agent_tui.ui.approval_panel import ApprovalPanel
    from agent_tui.ui.options import UiOptions
    from agent_tui.ui.transcript import Transcript


class AgentApp(ChatApp):
    """The chat, the prompt and the status bar over one `AgentRuntime`.

    Args:
        load: Builds everything it works on, see `UiOptions`; called in a thread after the
            first paint. Run the app with `agent_tui.ui.terminal.run_ui`.
        theme: Name of the theme; empty for the default.
        folder: Shown until the conversation is loaded.
        before_loading: Asks what has to be known before `load`, on the event loop; an
            `AgentTuiError` of either ends the app.
        has_mouse: Whether it is run with the mouse.
    """

    CSS_PATH = "app.tcss"
    TITLE = "agent-tui"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        load: "Callable[[], UiOptions]",
        theme: str = "",
        folder: str = "",
        before_loading: "Callable[[AgentApp], Awaitable[None]] | None" = None,
        *,
        has_mouse: bool = True,
    ) -> None:
        super().__init__(folder, has_mouse=has_mouse)
        self.HORIZONTAL_BREAKPOINTS = list(WIDTH_CLASSES)
        self.VERTICAL_BREAKPOINTS = list(HEIGHT_CLASSES)
        for own_theme in own_themes():
            self.register_theme(own_theme)
        self.theme = wanted_theme(theme, frozenset(self.available_themes))
        self._load = load
        self._before_loading = before_loading
        self._early_drafts: list[Draft] = []

    def get_driver_class(self) -> type[Driver]:
        """The driver of this platform; the usual one reads the terminal our way."""
        usual = super().get_driver_class()
        return TerminalDriver if usual is LinuxDriver else usual

    def compose(self) -> ComposeResult:
        """The chat comes into the empty space once it is loaded."""
        yield Vertical(id="upper")
        yield self.prompt
        yield self.status

    def on_mount(self) -> None:
        """Take keys at once; everything that takes time comes after the first paint."""
        self.prompt.focus()
        leave_on_signals(self)
        self.guest.arrive()
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
        if not self.is_headless:
            # What is here now stays to the end. Looking through it again and again for cycles
            # would stop the program for 0.2 s each time, with a long session on the screen.
            gc.freeze()
        send_early(self, self._early_drafts)

    async def on_unmount(self) -> None:
        """Let the running turn record what it has, then close the session."""
        self.guest.depart()
        if self.parts is not None:
            await self.parts.turns.stop()
            await self.parts.files.aclose()
            await self.runtime.aclose()
            await self.parts.options.close()

    # Messages of the widgets

    @on(Prompt.Submitted)
    def _submitted(self, event: Prompt.Submitted) -> None:
        if self.parts is None:
            self._early_drafts.append(event.draft)
        else:
            self.take(event.draft)

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

        picker = HistoryPicker(event.drafts)
        picker.add_class(*size_classes(self.size))
        self.push_screen(picker, self.prompt.go_back_to)

    @on(Prompt.Typed)
    def _typed(self) -> None:
        self._escaped_at = None
        if self.parts is not None:
            self.parts.approval.postpone()
            self.parts.attention.touched()
            self.refresh_hint()

    # These are bound by name: their widgets are not imported before the first paint.

    def on_approval_panel_answered(self, event: "ApprovalPanel.Answered") -> None:
        """The person answered."""
        self.ready.attention.touched()
        self.runtime.pending_approvals.answer(event.request_id, event.answer)

    def on_approval_panel_strayed(self, event: "ApprovalPanel.Strayed") -> None:
        """A letter that answers nothing belongs to the draft."""
        self.prompt.focus()
        self.prompt.area.insert(event.character)

    def on_paste(self, event: textual_events.Paste) -> None:
        """What is pasted while something else than a text field is in front belongs there too."""
        if len(self.screen_stack) == 1:
            self.prompt.focus()
            self.prompt.area.post_message(textual_events.Paste(event.text))

    def on_approval_panel_closed(self) -> None:
        """Nothing is asked any more; a search of the chat goes on."""
        if not self.query("#find:focus-within"):
            self.prompt.focus()

    def on_stack_view_follow_changed(self, event: "Transcript.FollowChanged") -> None:
        """Say that there is more below while the person reads above."""
        below = f"↓ {event.new_count} new · ctrl+l" if event.new_count else "↓ more · ctrl+l"
        self.ready.activity.show_below("" if event.following else below)

    def on_key(self, event: textual_events.Key) -> None:
        """Keys belong to the prompt where a click beside everything took them from it."""
        if self.focused is None and len(self.screen_stack) == 1:
            self.prompt.focus()
            if event.is_printable and event.character:
                self.prompt.area.insert(event.character)

    def on_app_focus(self, _event: textual_events.AppFocus) -> None:
        """The terminal is looked at again: keys and clicks of that moment answer nothing."""
        if self.parts is not None:
            self.parts.attention.focus_changed(True)
            self.parts.approval.expect_stray_click()

    def on_app_blur(self, _event: textual_events.AppBlur) -> None:
        """The person looks at something else."""
        if self.parts is not None:
            self.parts.attention.focus_changed(False)


def _load_with_imports(load: "Callable[[], UiOptions]") -> "UiOptions":
    """`load`, and the import of what will be put on the screen, both in this thread."""
    import agent_tui.ui.parts as _parts

    assert _parts
    return load()
