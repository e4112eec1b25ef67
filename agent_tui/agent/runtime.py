"""One conversation at work: the only writer of a session log, and what a front end talks to."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

from agent_tui.agent.activity import Activity, Emit
from agent_tui.agent.branching import Branching
from agent_tui.agent.compactor import Compactor
from agent_tui.agent.gate import ApprovalAnswer
from agent_tui.agent.inbox import QueuedMessage
from agent_tui.agent.loop_plan import LoopPlan
from agent_tui.agent.loops import LoopRunner
from agent_tui.agent.model_choice import choose_model, choose_thinking, learn_model
from agent_tui.agent.opening import cut_off_note
from agent_tui.agent.person_bash import run_person_command
from agent_tui.agent.runtime_facts import RuntimeFacts
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session_desk import OpenMode, SessionDesk
from agent_tui.agent.workers import Workers
from agent_tui.compaction.preview import CompactionPreview
from agent_tui.config import CompactionStrategy, PermissionMode, Settings
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent, Notice, QueueChanged, TurnFinished
from agent_tui.messages import ImageContent, ThinkingLevel
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import SessionInfoEntry
from agent_tui.sessions.file.status import SessionStatus


class AgentRuntime(RuntimeFacts):
    """A conversation and everything a person can do with it.

    One activity (a turn, a compaction, a command of the person's) runs at a time. The
    generators are to be consumed with ``contextlib.aclosing``; `abort` ends the activity and
    lets its last events through. Quick changes return their events.
    """

    def __init__(
        self, services: RuntimeServices, model: ModelRef, cwd: Path, mode: PermissionMode
    ) -> None:
        self._activity: Activity | None = None
        self._workers = Workers(services)
        desk = SessionDesk(
            services, self._workers, lambda: self.is_busy, model=model, cwd=cwd, mode=mode
        )
        super().__init__(services, desk)
        self._branching = Branching(desk, services)

    @property
    def is_busy(self) -> bool:
        """Whether an activity runs."""
        return self._activity is not None

    # Activities

    def submit(
        self, text: str, images: tuple[ImageContent, ...] = ()
    ) -> AsyncGenerator[AgentEvent, None]:
        """Send a message and run the turn to its end."""
        return self._write(lambda emit: self._submit(text, images, emit))

    def continue_turn(self) -> AsyncGenerator[AgentEvent, None]:
        """Go on after an error, an interruption or a reply cut off by its length."""
        return self._write(lambda emit: self._loops().go_on(emit))

    def loop(self, plan: LoopPlan) -> AsyncGenerator[AgentEvent, None]:
        """Run a prompt again and again; one `TurnFinished` ends all of it."""
        return self._write(lambda emit: self._loops().run(plan, emit))

    def compact(self, focus: str = "") -> AsyncGenerator[AgentEvent, None]:
        """Summarise into a new session file; on failure or abort nothing is written."""
        return self._write(lambda emit: self._compact(focus, emit))

    def compact_here(
        self, strategy: CompactionStrategy, focus: str = ""
    ) -> AsyncGenerator[AgentEvent, None]:
        """Compact in place, in this session file; on failure or abort nothing is written."""
        return self._write(lambda emit: self._compactor().compact_here(strategy, focus, emit))

    async def preview_compaction(self) -> CompactionPreview:
        """What a compaction would do now; writes nothing and asks no model."""
        return await self._compactor().preview()

    async def undo_compaction(self) -> tuple[AgentEvent, ...]:
        """Take back the newest compaction; one that began a session leads back to the earlier.

        Raises:
            CompactionError: There is none to take back.
            SessionError: It cannot be written, or the earlier session cannot be opened.
        """
        self._desk.prepare_to_write()
        return await self._desk.undo_compaction()

    def run_bash(self, command: str, *, in_context: bool) -> AsyncGenerator[AgentEvent, None]:
        """Run a command of the person's; they typed it, so nothing is asked."""
        return self._write(
            lambda emit: run_person_command(
                self.conversation,
                self._workers.tool_services(self.conversation, self._desk.approvals),
                command,
                in_context,
                emit,
            )
        )

    def abort(self) -> None:
        """Stop the running activity; its generator ends after its last events."""
        if self._activity is not None:
            self._activity.abort()

    def answer_approval(self, request_id: str, answer: ApprovalAnswer) -> None:
        """Answer an `ApprovalRequested`; late answers are ignored."""
        self._workers.gate.answer(request_id, answer)

    async def _write(
        self, work: Callable[[Emit], Awaitable[None]]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run what goes on with the session."""
        self._desk.prepare_to_write()
        async with aclosing(self._run(work)) as events:
            async for event in events:
                yield event

    async def _run(
        self, work: Callable[[Emit], Awaitable[None]]
    ) -> AsyncGenerator[AgentEvent, None]:
        if self._activity is not None:
            raise AgentTuiError(
                "Something is running already.", "Stop it first with Esc or /abort."
            )
        self._activity = activity = Activity(work)
        try:
            async with aclosing(activity.events()) as events:
                async for event in events:
                    if isinstance(event, TurnFinished):
                        self._activity = None
                    yield event
        finally:
            if self._activity is activity:
                self._activity = None

    async def _submit(self, text: str, images: tuple[ImageContent, ...], emit: Emit) -> None:
        self._workers.scopes(self.conversation).give_up_unfinished(emit)
        turn = self._workers.turn(self.conversation, self._desk.approvals, emit)
        await turn.run(text, images)

    def _loops(self) -> LoopRunner:
        return self._workers.loops(self.conversation, self._desk.approvals)

    def _compactor(self) -> Compactor:
        return self._workers.compactor(self.conversation)

    # Queue

    def enqueue(
        self, text: str, images: tuple[ImageContent, ...] = (), *, shown: str = ""
    ) -> tuple[AgentEvent, ...]:
        """Deliver `text` before the next request of the running turn.

        Args:
            text: What to say.
            images: What goes with it.
            shown: How it is shown while it waits, if not whole.
        """
        self.conversation.inbox.add(QueuedMessage(text, images, shown))
        return (QueueChanged(self.queued),)

    def take_back_queue(self) -> tuple[QueuedMessage, ...]:
        """Empty the queue and return what was in it."""
        return self.conversation.inbox.take_all()

    # Settings of the conversation

    def set_model(self, model: ModelRef) -> tuple[AgentEvent, ...]:
        """Use `model` from the next request on."""
        self._desk.require_writable()
        return choose_model(self.conversation, model, self._services)

    def set_thinking(self, level: ThinkingLevel) -> tuple[AgentEvent, ...]:
        """Ask the model to think more or less from the next request on."""
        self._desk.require_writable()
        return choose_thinking(self.conversation, level, self._services)

    def set_permission_mode(self, mode: PermissionMode) -> None:
        """Change what needs approval, from the next call on."""
        self._desk.approvals.mode = mode

    def use_settings(self, settings: Settings) -> None:
        """Go by other settings of compaction, and another time for commands, from now on."""
        self._services.use_settings(settings)
        self.conversation.settings = settings.compaction
        self._workers.ahead.drop()

    def rename(self, name: str) -> tuple[AgentEvent, ...]:
        """Name the session."""
        self._desk.require_writable()
        self.log.append(SessionInfoEntry(name=name))
        return (self._desk.session_changed("renamed"),)

    async def refresh_usage(self) -> tuple[AgentEvent, ...]:
        """Count again, off the event loop, once the model's own server told its window."""
        conversation = self.conversation
        learned = await learn_model(conversation, self._services)
        return (*learned, *await conversation.refresh_usage())

    async def apply_trust(self) -> tuple[AgentEvent, ...]:
        """Bring prompt and rules in line with the files and what `trust` says now; count again.

        Raises:
            AgentTuiError: Something runs.
        """
        return await self._desk.apply_trust()

    # Sessions

    async def start_new_session(self) -> tuple[AgentEvent, ...]:
        """Leave this session as it is and begin an empty one with the same model."""
        return await self._desk.start_new()

    async def open_session(
        self,
        ref: str,
        *,
        keep_model: bool = False,
        mode: OpenMode = "write",
        here: bool = False,
    ) -> tuple[AgentEvent, ...]:
        """Open another session by path, id or name and go on in its folder with its model.

        Args:
            ref: What `SessionStore.open` takes.
            keep_model: Go on with the present model instead of the session's.
            mode: Whether to go on in the session, to read it only, or to go on in a copy of
                it; the last two also work while another process has it open.
            here: Work in the present folder, whether the session's is there or not.

        Raises:
            SessionError: no such session, or another process has it open.
        """
        events = await self._desk.open(ref, keep_model=keep_model, mode=mode, here=here)
        told = self._workers.scopes(self.conversation).notices()
        if not told and (note := cut_off_note(self.log)):
            told = (Notice("info", note),)
        return (*events, *told)

    async def session_status(self, ref: str) -> SessionStatus:
        """What is to be known of a session before it is opened: its folder, who has it open.

        Raises:
            SessionError: There is no such session.
        """
        return await self._desk.session_status(ref)

    async def fork(self, entry_id: str | None = None) -> tuple[AgentEvent, ...]:
        """Go on in a copy of this session as it is now, or as it was at `entry_id`.

        A message of the person's is left out and returned for the prompt, as by `go_back`.

        Raises:
            AgentTuiError: Something runs.
            SessionError: There is nothing to copy, or the copy cannot be written.
        """
        return await self._branching.fork(entry_id)

    async def go_back(self, entry_id: str) -> tuple[AgentEvent, ...]:
        """Go on from an earlier entry, or before an earlier message of the person's.

        The text of such a message comes back in `WentBack`. Nothing is written before
        something is said there; then that becomes a new branch, and the other one stays.

        Raises:
            AgentTuiError: Something runs.
            SessionError: There is no such entry, or the session is open read-only.
        """
        self._desk.require_idle()
        return await self._branching.go_back(entry_id)

    def go_back_with_summary(self, entry_id: str) -> AsyncGenerator[AgentEvent, None]:
        """The same as an activity that first sums up the branch that is left.

        Where there is nothing to sum up it goes back all the same and says so. On abort, or if
        the summary cannot be written, the conversation stays where it was.
        """
        return self._run(lambda emit: self._branching.go_back_with_summary(entry_id, emit))

    def label(self, entry_id: str, text: str) -> None:
        """Put a bookmark on an entry of this session; an empty text takes it off.

        Raises:
            SessionError: There is no such entry, or it cannot be written.
        """
        self._branching.label(entry_id, text)

    async def aclose(self) -> None:
        """Abort what runs and close the session file."""
        if self._activity is not None:
            await self._activity.stop()
        await self._workers.ahead.aclose()
        self.log.close()

    async def _compact(self, focus: str, emit: Emit) -> None:
        child = await self._compactor().compact_to_child(focus, emit)
        if child is None:
            return
        for event in self._desk.follow_compaction(*child):
            emit(event)
        for event in await self.conversation.refresh_usage():
            emit(event)
