"""Handles what the user does: the start, input, keys, approvals, the end.

It knows no widget: events go down to a view, and the app hands the user's intents up to it.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.session.manager import READ_ONLY, READ_ONLY_HINT
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.commands.core.between_turns import BetweenTurns
from agent_tui.commands.core.front import Front, Level
from agent_tui.commands.core.permission_modes import PERMISSION_MODES
from agent_tui.commands.core.registry import (
    CalledCommand,
    CommandRegistry,
    UnknownCommand,
    parse_command,
)
from agent_tui.commands.sessions import continue_wait, resume_session
from agent_tui.commands.trust import ask_about_started, ask_about_workspace
from agent_tui.drafts.draft import Draft
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent
from agent_tui.tools.form import FormFiller
from agent_tui.ui.options import UiOptions
from agent_tui.ui.turns import EventSink, StartWork, TurnRunner

GO_BACK_WITHIN_S = 0.6
"""A second Esc within this time shows the places to go back to."""


class ChatView(EventSink, Protocol):
    """What the controller asks of the screen; `EventView` does it."""

    @property
    def is_drafting(self) -> bool:
        """Whether something stands in the prompt that was not sent."""
        ...

    def say(self, text: str, level: Level = "info") -> None:
        """Put one line into the chat."""
        ...

    def redraw(self) -> None:
        """Rebuild the chat from the session."""
        ...

    def refresh_status(self) -> None:
        """Update what is around the chat."""
        ...

    def follow_end(self) -> None:
        """Go to the newest message."""
        ...

    def message_sent(self, draft: Draft) -> None:
        """Keep what the user sent in the prompt's history."""
        ...

    def give_back(self, drafts: Sequence[Draft]) -> None:
        """Return undelivered drafts to the prompt."""
        ...


@dataclass(frozen=True, slots=True)
class ControllerPorts:
    """The services that the controller uses.

    Attributes:
        view: Shows what happens.
        front: What commands act on.
        front_for: The same for a command called in a draft.
        fill_form: Shows the model's questions.
        turns: Runs activities.
        start_work: Runs a coroutine in a task of the app's.
        read_files: Reads the prompt history and what else the screen keeps in files.
        refresh_commands: Has features look for commands; true if these changed.
        left: What to tell the user about files that commands left, once the session is closed.
        set_up_model: Offers the ways to a first model where that is wanted at the start.
        close: Ends what the screen itself runs.
    """

    view: ChatView
    front: Front
    front_for: Callable[[Draft], Front]
    fill_form: FormFiller
    turns: TurnRunner
    start_work: StartWork
    read_files: Callable[[], Awaitable[object]]
    refresh_commands: Callable[[], Awaitable[bool]]
    set_up_model: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]


class Controller:
    """Turns what the user does into calls of the runtime, and into commands.

    Args:
        options: The conversation and how this run was started.
        registry: All commands.
        ports: The services that it uses.

    Attributes:
        turns: Runs activities.
        front: What commands act on.
        refresh_commands: Has features look for commands; true if these changed.
        left: What to tell the user about files that commands left, once the session is closed.
    """

    def __init__(
        self, options: UiOptions, registry: CommandRegistry, ports: ControllerPorts
    ) -> None:
        self.options = options
        self.left: tuple[str, ...] = ()
        self.registry = registry
        self.turns = ports.turns
        self._ports = ports
        self._view = ports.view
        self.front = ports.front
        self.refresh_commands = ports.refresh_commands
        self._escaped_at: float | None = None
        self._screen_left_at: float | None = None
        self._was_full = False
        self._is_looking = False
        self._commands = 0
        self._between_turns = BetweenTurns(self.front)

    @property
    def runtime(self) -> AgentRuntime:
        """The conversation."""
        return self.options.runtime

    # Start and end

    async def begin(self, warnings: Sequence[str] = ()) -> None:
        """Everything that must not keep the first key waiting, up to the first prompt.

        Args:
            warnings: What the app found wrong, told with what was wrong before.
        """
        options = self.options
        self.front.warm_up()
        self.runtime.listen_to_jobs(self._see_job, can_wake=True)
        self._start_servers()
        opens_another = bool(options.resume) or options.opens_picker
        if not options.resume:
            self._view.redraw()
        if not opens_another:
            self._tell_problems(warnings)
        await self._ports.read_files()
        self._view.refresh_status()
        await self._ports.set_up_model()
        if options.resume:
            await self._resume(options.resume)
            self._tell_problems(warnings)
        elif options.opens_picker:
            self._ports.start_work(self._pick_session(warnings))
        self.front.show_events(await self.runtime.refresh_usage())
        await ask_about_started(self.front)
        await self.refresh_commands()  # of the folder of the session that was opened
        if options.first_prompt:
            self.dispatch(options.first_prompt)
        elif options.resume:
            await continue_wait(self.front)
        self.turns.listen(self._look_between_turns)
        self._look_between_turns()

    def _start_servers(self) -> None:
        """Start the servers, and let their tools and ours ask the user."""
        from agent_tui.commands.core.forms import form_filler

        servers = self.options.services.servers
        servers.let_answer(form_filler(self.front))
        self.runtime.let_answer(self._ports.fill_form)
        servers.listen(lambda text: self._view.say(text, "warning"))
        servers.start(self.runtime.conversation.cwd)

    def _see_job(self, event: AgentEvent) -> None:
        self.front.show_events((event,))
        self._tell_news()

    def _tell_news(self) -> None:
        """Begin a turn if the model waits for news; with a draft, they go with that."""
        if self.turns.is_running or self._view.is_drafting:
            return
        if (turn := self.runtime.turn_for_news()) is not None:
            self.turns.start(turn)

    def _look_between_turns(self) -> None:
        """Tell news, and begin to look for what features have to say, unless that is under way."""
        self._tell_news()
        if not self._is_looking:
            self._is_looking = True
            self._ports.start_work(self._show_what_is_found())

    async def _show_what_is_found(self) -> None:
        try:
            self.front.show_events(await self._between_turns.look())
        finally:
            self._is_looking = False

    def _tell_problems(self, warnings: Sequence[str]) -> None:
        for problem in self.options.problems:
            self._view.say(problem.notice, "warning")
        for warning in warnings:
            self._view.say(warning, "warning")
        for rule in self.runtime.conversation.permissions.book.problems:
            self._view.say(f"Permission rule ignored: {rule}", "warning")
        for notice in self.options.notices:
            self._view.say(notice)

    async def _resume(self, ref: str) -> None:
        failure = ""
        try:
            is_open = await resume_session(self.front, ref, keep_model=self.options.keeps_model)
        except AgentTuiError as error:
            is_open, failure = False, str(error)
        if is_open:
            await ask_about_workspace(self.front)
        else:
            self._view.redraw()
        if failure:
            self._view.say(failure, "error")

    async def _pick_session(self, warnings: Sequence[str]) -> None:
        await self.call("/resume")
        self._tell_problems(warnings)

    async def aclose(self) -> None:
        """Let the running turn record its state, then close the session and its services."""
        await self.turns.stop()
        await self._ports.close()
        self.left = tuple(notice.text for notice in await self.runtime.aclose())
        await self.options.close()

    # What is sent

    def submit(self, draft: Draft) -> None:
        """Store and dispatch a sent draft; scrolls to the end if it starts a turn."""
        self._view.message_sent(draft)
        if not (self.turns.is_running or parse_command(draft.full_text)):
            self._view.follow_end()
        self.dispatch(draft.full_text, draft)

    def comment(self, draft: Draft) -> None:
        """Store a message given with an approval and deliver it to the model next."""
        self._view.message_sent(draft)
        self.turns.queue(draft)

    def dispatch(self, text: str, draft: Draft | None = None) -> None:
        """Run a command or a shell command, or send a message (`draft`, if `text` is from one)."""
        draft = draft or Draft(text)
        called = self.registry.read(text)
        if isinstance(called, CalledCommand):
            self._commands += 1
            self._ports.start_work(self._run_command(called, draft))
        elif isinstance(called, UnknownCommand):
            self._view.give_back((draft,))
            self._view.say(called.why, "warning")
        elif not text.strip("! \n"):
            self._send(draft)
        elif self.runtime.conversation.log.is_read_only:
            self._view.give_back((draft,))
            self._view.say(f"{READ_ONLY} {READ_ONLY_HINT}", "warning")
        elif text.startswith("!"):
            self.turns.run_command(draft)
        else:
            self._send(draft)

    def _send(self, draft: Draft) -> None:
        if self.runtime.conversation.model.name:
            self.turns.send(draft)
        else:
            self._view.give_back((draft,))
            self._ports.start_work(self._choose_model())

    async def _choose_model(self) -> None:
        if not await self.front.set_up_model():
            self._view.say("No model is selected. Use /model.", "warning")

    async def call(self, text: str) -> None:
        """Run a command, or say that it is unknown, and wait for its end."""
        called = self.registry.read(text)
        if isinstance(called, CalledCommand):
            self._commands += 1
            await self._run_command(called, Draft())
        elif isinstance(called, UnknownCommand):
            self._view.say(called.why, "warning")

    async def _run_command(self, called: CalledCommand, draft: Draft) -> None:
        try:
            await called.run(self._ports.front_for(draft))
        except AgentTuiError as error:
            self._view.say(str(error), "error")
        finally:
            self._commands -= 1
            self._tell_news()

    # Keys

    def note_typing(self) -> None:
        """Note that a key changed the prompt.

        An earlier Esc no longer counts; news that waited for a draft that is gone begins a turn.
        """
        self._escaped_at = None
        if not self._commands:  # sending one clears the prompt, too
            self._tell_news()

    def note_screen_left(self) -> None:
        """Note that the user left a screen: another Esc right after it is meant for the screen."""
        self._screen_left_at = self.options.clock()

    def interrupt(self) -> None:
        """Esc: stop what runs; pressed twice while nothing runs, go back in the chat."""
        before, self._escaped_at = self._escaped_at, None
        left_at = self._screen_left_at
        if left_at is not None and self.options.clock() - left_at <= GO_BACK_WITHIN_S:
            return
        if self.turns.interrupt() or not self.runtime.conversation.log.entries:
            return
        now = self.options.clock()
        if before is not None and now - before <= GO_BACK_WITHIN_S:
            self.dispatch("/tree")
        else:
            self._escaped_at = now

    def stop(self) -> bool:
        """Ctrl+C: stop what runs; false if nothing runs or it is already stopping."""
        return not self.turns.is_stopping and self.turns.interrupt()

    def next_permission_mode(self) -> None:
        """Shift+Tab: select the next mode; full mode only if the user was in it before."""
        now = self.runtime.conversation.permissions.mode
        self._was_full = self._was_full or now == "full"
        modes = PERMISSION_MODES if self._was_full else PERMISSION_MODES[:-1]
        self.runtime.sessions.use_mode(modes[(modes.index(now) + 1) % len(modes)])
        self._view.refresh_status()

    def answer_approval(self, request_id: str, answer: ApprovalAnswer) -> None:
        """Pass on the user's answer about a tool call."""
        self.runtime.pending_approvals.answer(request_id, answer)
