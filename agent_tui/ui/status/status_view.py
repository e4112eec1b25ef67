"""Keeps what is around the chat up to date: status bar, title, hint, greeting, watchers."""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

from agent_tui.commands.core.short_words import short_path
from agent_tui.config import PermissionMode, TerminalStateSetting
from agent_tui.events import AgentEvent, TurnFinished
from agent_tui.key_actions import keys_in_force
from agent_tui.messages import JsonObject
from agent_tui.paths import make_private_dir
from agent_tui.providers.rate_limits import rate_limits, tightest_of_plan
from agent_tui.regular_files import read_regular_file
from agent_tui.ui.chat.welcome import newest_sessions, renew_welcome
from agent_tui.ui.chat.widgets import ChatWidgets
from agent_tui.ui.lines_field import new_line_hint
from agent_tui.ui.options import UiOptions
from agent_tui.ui.status.status_line import StatusFields, git_branch, plan_text
from agent_tui.ui.terminal.state import REPEAT_PROGRESS_S, Progress, can_show_progress
from agent_tui.ui.transcript.blocks import StartRow, WelcomeBlock
from agent_tui.ui.watchers import WatchedScreen, make_watchers
from agent_tui.ui.window import Window

KNOWN_AFTER = 10
"""After this many sent messages, the user knows the keys."""

Doing: TypeAlias = Literal["idle", "working", "asks"]
"""The state of the program, as shown in the terminal's title."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The state that hints depend on. `text` is the text in the prompt."""

    doing: Doing
    mode: PermissionMode
    text: str = ""
    is_menu_open: bool = False


def hint_text(now: Situation) -> str:
    """The keys that are useful now, in one short line; empty if the screen shows them."""
    if now.is_menu_open:
        return ""
    match now.doing:
        case "asks":
            return ""  # the question says what each key is
        case "working":
            what = "queues" if now.text.strip() else "queues what you write"
            return keys_in_force().hint("submit", what)
        case "idle":
            return _idle_hint(now)
        case _:
            assert_never(now.doing)


def _idle_hint(now: Situation) -> str:
    hint = keys_in_force().hint
    clears = hint("clear_or_leave", "clears")
    if not now.text.strip():
        mode, palette = hint("permission_mode", f"mode: {now.mode}"), hint("palette", "all actions")
        hints = (hint("submit", "sends"), mode, palette, "/help")
    elif now.text.startswith("!"):
        hints = (hint("submit", "runs it here"), hint("history_older", "earlier prompts"), clears)
    else:
        editor = hint("external_editor", "editor")
        hints = (hint("submit", "sends"), new_line_hint(), "@ files", editor, clears)
    return " · ".join(filter(None, hints))


class Onboarding:
    """Whether hints still help: counts sent messages over all sessions until there are enough.

    Args:
        file: Where the count is kept; None is for a user who knows everything.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._sent = 0 if file is not None else KNOWN_AFTER

    @property
    def is_active(self) -> bool:
        """Whether hints still help."""
        return self._sent < KNOWN_AFTER

    def load(self) -> None:
        """Read the count. Blocking; an unreadable file counts as 0."""
        if self._file is None:
            return
        try:
            kept = json.loads(read_regular_file(self._file))
        except (OSError, ValueError):
            return
        if isinstance(kept, int):
            self._sent = max(kept, self._sent)

    def message_sent(self) -> None:
        """Count a sent message. If the count cannot be stored, hints return next time."""
        if self._file is None or not self.is_active:
            return
        self._sent += 1
        try:
            make_private_dir(self._file.parent)
            self._file.write_text(f"{self._sent}\n", encoding="utf-8")
        except OSError:
            return


class StatusView:
    """Shows the state of the program.

    Args:
        window: The terminal's title, mouse and bell.
        options: The conversation and what is said of this run.
        widgets: The widgets to change.

    Attributes:
        watchers: What features bring to learn what happens on the screen.
        onboarding: Whether hints still help.
    """

    def __init__(self, window: Window, options: UiOptions, widgets: ChatWidgets) -> None:
        self._window = window
        self._options = options
        self._widgets = widgets
        self.watchers = make_watchers(
            WatchedScreen(
                options.settings,
                options.clock,
                lambda: self.fields().folder,
                window.terminal.write,
                lambda: window.app.bell(),
                window.start_work,
            )
        )
        self.onboarding = Onboarding(options.onboarding_file)
        self._is_working = self._is_asking = False
        self._titled: Doing = "idle"
        self._branch = ""
        self._sandbox = ""
        self._script_line = ""
        self._told_failures: set[str] = set()
        self._order = options.settings.status_fields
        self._sessions: tuple[StartRow, ...] = ()
        self._offers_start = False
        self._has_failed = False
        self.use_terminal_state(options.settings.terminal_state)
        window.app.set_interval(REPEAT_PROGRESS_S, window.terminal.repeat_progress)

    def use_terminal_state(self, setting: TerminalStateSetting) -> None:
        """Show the program's state in the terminal as `setting` says."""
        as_progress = setting == "auto" and can_show_progress(os.environ)
        self._window.terminal.show_state(in_title=setting != "off", as_progress=as_progress)

    def person_acted(self) -> None:
        """Note that a key was pressed: an error that ended the last turn was seen."""
        for watcher in self.watchers:
            watcher.note_key()
        if self._has_failed:
            self._has_failed = False
            self._window.terminal.set_progress(self._progress)

    def read_folder(self) -> None:
        """Read which branch is checked out and whether commands are sandboxed. Blocking."""
        cwd = self._options.runtime.conversation.cwd
        self._branch = git_branch(cwd)
        self._sandbox = self._options.sandbox_word(cwd)

    def set_working(self, is_working: bool) -> None:
        """Set whether an activity runs; shown with the next event or refresh."""
        self._is_working = is_working

    def set_asking(self, is_asking: bool) -> None:
        """Set whether a form waits for the user's answers; shown with the next event."""
        self._is_asking = is_asking

    def refresh(self) -> None:
        """Update everything, including the prompt's frame."""
        fields = self.fields()
        self._widgets.status_bar.show(fields)
        self._run_script(fields)
        self._widgets.prompt.set_class(fields.mode == "plan", "-plan")
        self._widgets.prompt.set_class(fields.mode == "full", "-full")
        self._refresh_title(fields)
        self._refresh_welcome()
        self.refresh_hint()

    def refresh_hint(self) -> None:
        """Show a new user the keys that are useful now."""
        if not self.onboarding.is_active:
            self._widgets.activity.show_hint("")
            return
        prompt = self._widgets.prompt
        situation = Situation(
            doing=self._doing,
            mode=self._options.runtime.conversation.permissions.mode,
            text=prompt.area.text,
            is_menu_open=prompt.menu.is_open,
        )
        self._widgets.activity.show_hint(hint_text(situation))

    def follow(self, event: AgentEvent) -> None:
        """Update title and hint after an event."""
        if self._offers_start:
            self._refresh_welcome()
        if isinstance(event, TurnFinished):
            self._has_failed = event.outcome == "error"
        if self._doing != self._titled or self._has_failed:
            self._refresh_title(self.fields())
            self.refresh_hint()
        for watcher in self.watchers:
            watcher.see(event)

    def fields(self) -> StatusFields:
        """What the status bar shows now."""
        runtime = self._options.runtime
        usage, totals = runtime.conversation.usage, runtime.conversation.totals
        services = runtime.services
        limits = rate_limits(services.provider, runtime.conversation.model)
        plan, plan_level = plan_text(tightest_of_plan(limits), services.wall_clock())
        return StatusFields(
            folder=short_path(runtime.conversation.cwd, Path.home()),
            branch=self._branch,
            model=runtime.conversation.model.name or "no model",
            mode=runtime.conversation.permissions.mode,
            input_tokens=totals.input_tokens,
            output_tokens=totals.output_tokens,
            cost_usd=totals.cost_usd,
            name=runtime.conversation.log.name,
            usage=usage,
            level=runtime.conversation.level,
            compacts_at=runtime.conversation.compacts_at,
            badge=self._badge(),
            sandbox=self._sandbox,
            plan=plan,
            plan_level=plan_level,
            jobs=len(runtime.conversation.jobs.running),
            is_mouse_off=not self._window.terminal.is_mouse_on,
            command=self._script_line,
            order=self._order,
        )

    def use_fields(self, order: tuple[str, ...]) -> None:
        """Show other parts, or in another order."""
        self._order = order
        self.refresh()

    def _run_script(self, fields: StatusFields) -> None:
        """Run the user's command with the present facts, if needed."""
        script = self._options.status_script
        if script is not None and script.wants(self._facts(fields)):
            work = script.follow(self._show_script_line, self._tell_once)
            self._window.start_work(work, group="status script")

    def _facts(self, fields: StatusFields) -> JsonObject:
        """The facts for the user's command."""
        return {
            "model": fields.model,
            "context_percent": fields.usage.percent,
            "context_is_estimate": fields.usage.is_estimate,
            "cost_usd": round(fields.cost_usd, 6),
            "input_tokens": fields.input_tokens,
            "output_tokens": fields.output_tokens,
            "folder": str(self._options.runtime.conversation.cwd),
            "branch": fields.branch,
            "mode": fields.mode,
            "session": fields.name,
        }

    def _show_script_line(self, line: str) -> None:
        self._script_line = line
        self._widgets.status_bar.show(self.fields())

    def _tell_once(self, failure: str) -> None:
        if failure not in self._told_failures:
            self._told_failures.add(failure)
            self._window.app.notify(failure, severity="warning", markup=False)

    def _badge(self) -> str:
        if self._options.runtime.conversation.log.is_read_only:
            return "read-only"
        return "demo" if self._options.demo is not None else ""

    @property
    def _doing(self) -> Doing:
        if self._is_asking or self._widgets.approval.request is not None:
            return "asks"
        return "working" if self._is_working else "idle"

    def _refresh_title(self, fields: StatusFields) -> None:
        self._titled = self._doing
        title = " · ".join(filter(None, (fields.folder, fields.name, self._titled)))
        self._window.terminal.set_title(title)
        self._window.terminal.set_progress(self._progress)

    @property
    def _progress(self) -> Progress:
        match self._doing:
            case "asks":
                return "waiting"
            case "working":
                return "working"
            case "idle":
                return "error" if self._has_failed else "none"

    def greet(self) -> None:
        """Find sessions to resume for an empty chat."""
        self._window.start_work(self._offer_sessions(), group="start")

    async def _offer_sessions(self) -> None:
        self._sessions = await asyncio.to_thread(newest_sessions, self._options.runtime)
        self._refresh_welcome()

    def _refresh_welcome(self) -> None:
        """Update the greeting; while it is all there is, the prompt offers its first step."""
        transcript = self._widgets.transcript
        welcome = renew_welcome(self._options, transcript.blocks, self._sessions)
        if welcome is not None:
            transcript.replace_first(welcome)
        first = transcript.blocks[0] if transcript.first_id is not None else None
        rows = first.hints if isinstance(first, WelcomeBlock) and not first.is_begun else ()
        self._offers_start = bool(rows)
        self._widgets.prompt.offer(rows[0].draft if rows else "")
