"""One conversation at work: the only writer of a session log, and what a front end talks to."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

from agent_tui.agent.activity import Activity, Emit
from agent_tui.agent.approval import Approvals
from agent_tui.agent.compactor import Compactor
from agent_tui.agent.context_files import ContextFile, load_context_files
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.gate import ApprovalAnswer
from agent_tui.agent.model_choice import choose_model, choose_thinking, learn_model
from agent_tui.agent.opening import (
    converse,
    last_model_name,
    last_thinking_level,
    model_change,
    model_to_resume,
    new_log,
    working_folder,
)
from agent_tui.agent.person_bash import run_person_command
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.turn import Turn
from agent_tui.agent.undo import left_out_note, undo_newest
from agent_tui.agent.workers import Workers
from agent_tui.compaction.preview import CompactionPreview
from agent_tui.config import PermissionMode, Settings
from agent_tui.errors import AgentTuiError, CompactionError
from agent_tui.events import (
    AgentEvent,
    ContextWarning,
    ModelChanged,
    Notice,
    QueueChanged,
    SessionChanged,
    SessionChangeReason,
    TodosChanged,
    TotalsChanged,
    TurnFinished,
)
from agent_tui.messages import ImageContent, ThinkingLevel, Todo
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.sessions.entries import Entry, SessionInfoEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import ContextUsage
from agent_tui.tools.base import Toolbox


class AgentRuntime:
    """A conversation and everything a person can do with it.

    One activity (a turn, a compaction, a command of the person's) runs at a time. The
    generators are to be consumed with ``contextlib.aclosing``; `abort` ends the activity and
    lets its last events through. Quick changes return their events.
    """

    def __init__(
        self, services: RuntimeServices, model: ModelRef, cwd: Path, mode: PermissionMode
    ) -> None:
        self._services = services
        self._activity: Activity | None = None
        self._workers = Workers(services)
        self._approvals = services.make_approvals(cwd, mode)
        self._context_files = load_context_files(services.user_config_dir, cwd)
        thinking = services.settings.thinking
        log = new_log(services, cwd, model, thinking)
        self._conversation = converse(services, log, cwd, model, thinking, self._context_files)

    # What a front end reads

    @property
    def model(self) -> ModelRef:
        """The model of the next request."""
        return self._conversation.model

    @property
    def model_info(self) -> ModelInfo:
        """What is known of that model."""
        return self._conversation.model_info

    @property
    def thinking(self) -> ThinkingLevel:
        """How much the model is asked to think."""
        return self._conversation.thinking

    @property
    def permission_mode(self) -> PermissionMode:
        """What needs the person's approval."""
        return self._approvals.mode

    @property
    def approvals(self) -> Approvals:
        """The permission engine, for showing its rules."""
        return self._approvals

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._services.settings

    @property
    def cwd(self) -> Path:
        """The workspace."""
        return self._conversation.cwd

    @property
    def log(self) -> SessionLog:
        """The present session, for reading."""
        return self._conversation.log

    @property
    def store(self) -> SessionStore:
        """All sessions, for reading."""
        return self._services.store

    @property
    def conversation(self) -> Conversation:
        """The whole state, for reading."""
        return self._conversation

    @property
    def toolbox(self) -> Toolbox:
        """The tools the model is offered."""
        return self._services.toolbox

    @property
    def context_files(self) -> tuple[ContextFile, ...]:
        """The AGENTS.md files in force."""
        return self._context_files

    @property
    def usage(self) -> ContextUsage:
        """How full the window is, as last counted."""
        return self._conversation.usage

    @property
    def totals(self) -> TotalsChanged:
        """Tokens and cost of this session."""
        return self._conversation.totals

    @property
    def todos(self) -> tuple[Todo, ...]:
        """The model's plan."""
        return tuple(self._conversation.todos)

    @property
    def queued(self) -> tuple[str, ...]:
        """Messages typed while a turn runs and not delivered yet."""
        return tuple(self._conversation.inbox.texts)

    @property
    def is_busy(self) -> bool:
        """Whether an activity runs."""
        return self._activity is not None

    def history(self) -> tuple[Entry, ...]:
        """The entries of the present session from its root to its leaf."""
        return self.log.path_entries()

    # Activities

    def submit(
        self, text: str, images: tuple[ImageContent, ...] = ()
    ) -> AsyncGenerator[AgentEvent, None]:
        """Send a message and run the turn to its end."""
        return self._run(lambda emit: self._turn(emit).run(text, images))

    def continue_turn(self) -> AsyncGenerator[AgentEvent, None]:
        """Go on after an error, an interruption or a reply cut off by its length."""
        return self._run(lambda emit: self._turn(emit).run(None))

    def compact(self, focus: str = "") -> AsyncGenerator[AgentEvent, None]:
        """Summarise into a new session file; on failure or abort nothing is written."""
        return self._run(lambda emit: self._compact(focus, emit))

    async def preview_compaction(self) -> CompactionPreview:
        """What a compaction would do now; writes nothing and asks no model."""
        return await self._compactor().preview()

    async def undo_compaction(self) -> tuple[AgentEvent, ...]:
        """Take back the newest compaction; one that began a session leads back to the earlier.

        Raises:
            CompactionError: There is none to take back.
            SessionError: It cannot be written, or the earlier session cannot be opened.
        """
        before = self._conversation
        newest = before.log.leaf_id
        earlier = await undo_newest(before.log, self.store, self.cwd)
        self._workers.ahead.drop()
        events: tuple[AgentEvent, ...] = ()
        if earlier is not None:
            log = earlier.log
            if self.is_busy or before.log.leaf_id != newest:  # work began while the file was read
                log.close()
                raise CompactionError("Not undone: work began meanwhile.", "Undo when it is done.")
            events = self._switch(log, before.cwd, before.model, before.thinking, "resumed")
            if before.model.name != last_model_name(log):
                log.append(model_change(before.model))
            left_out = [left_out_note(before.log)] if earlier.left_out else []
            events += tuple(Notice("warning", note) for note in (*left_out, *log.warnings))
        counted = await self.conversation.refresh_usage()
        self.conversation.left_by_compaction = self.usage.used
        return (*events, *(e for e in counted if not isinstance(e, ContextWarning)))

    def run_bash(self, command: str, *, in_context: bool) -> AsyncGenerator[AgentEvent, None]:
        """Run a command of the person's; they typed it, so nothing is asked."""
        return self._run(
            lambda emit: run_person_command(
                self._conversation,
                self._workers.tool_services(self._conversation, self._approvals),
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

    def _turn(self, emit: Emit) -> Turn:
        return self._workers.turn(self._conversation, self._approvals, emit)

    def _compactor(self) -> Compactor:
        return self._workers.compactor(self._conversation)

    # Queue

    def enqueue(self, text: str) -> tuple[AgentEvent, ...]:
        """Deliver `text` before the next request of the running turn."""
        self._conversation.inbox.texts.append(text)
        return (QueueChanged(self.queued),)

    def take_back_queue(self) -> tuple[str, ...]:
        """Empty the queue and return what was in it."""
        return self._conversation.inbox.take_all()

    # Settings of the conversation

    def set_model(self, model: ModelRef) -> tuple[AgentEvent, ...]:
        """Use `model` from the next request on."""
        return choose_model(self._conversation, model, self._services)

    def set_thinking(self, level: ThinkingLevel) -> tuple[AgentEvent, ...]:
        """Ask the model to think more or less from the next request on."""
        return choose_thinking(self._conversation, level, self._services)

    def set_permission_mode(self, mode: PermissionMode) -> None:
        """Change what needs approval, from the next call on."""
        self._approvals.mode = mode

    def rename(self, name: str) -> tuple[AgentEvent, ...]:
        """Name the session."""
        self.log.append(SessionInfoEntry(name=name))
        return (self._session_changed("renamed"),)

    async def refresh_usage(self) -> tuple[AgentEvent, ...]:
        """Count again, off the event loop, once the model's own server told its window."""
        conversation = self._conversation
        learned = await learn_model(conversation, self._services)
        return (*learned, *await conversation.refresh_usage())

    # Sessions

    async def start_new_session(self) -> tuple[AgentEvent, ...]:
        """Leave this session as it is and begin an empty one with the same model."""
        before = self._conversation
        log = new_log(self._services, before.cwd, before.model, before.thinking)
        changes = self._switch(log, before.cwd, before.model, before.thinking, "new")
        return (*changes, *await self.conversation.refresh_usage())

    async def open_session(self, ref: str, *, keep_model: bool = False) -> tuple[AgentEvent, ...]:
        """Open another session by path, id or name and go on in its folder with its model.

        Args:
            ref: What `SessionStore.open` takes.
            keep_model: Go on with the present model instead of the session's.

        Raises:
            SessionError: no such session, or another process has it open.
        """
        if await asyncio.to_thread(self._is_present_session, ref):
            return (Notice("info", "This session is open already."),)
        log = await asyncio.to_thread(self.store.open, ref, self.cwd)
        # A long session is 100,000 objects without cycles; each full pass of the garbage
        # collector over them would stop the program for 0.1 s and more.
        gc.freeze()
        cwd, folder_note = working_folder(log, self.cwd)
        model, model_note = self.model, ""
        if not keep_model:
            model, model_note = model_to_resume(log, self.model, self._services)
        events = self._switch(log, cwd, model, last_thinking_level(log), "resumed")
        if model.name != last_model_name(log) and not log.is_read_only:
            log.append(model_change(model))
        is_there = str(cwd) == log.header.cwd
        notices = (
            Notice("info" if is_there else "warning", folder_note),
            *(Notice("warning", note) for note in (model_note, *log.warnings)),
        )
        told = (notice for notice in notices if notice.text)
        return (*events, *await self.conversation.refresh_usage(), *told)

    def _is_present_session(self, ref: str) -> bool:
        present = self.log.path
        if present is None or not present.exists():
            return False
        return self.store.find(ref, self.cwd).samefile(present)

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
        before = self._conversation
        log, finished = child
        changes = self._switch(log, before.cwd, before.model, before.thinking, "compacted")
        for event in (finished, *changes, self.conversation.use_window(finished.tokens_after)):
            emit(event)
        for event in await self.conversation.refresh_usage():
            emit(event)

    def _switch(
        self,
        log: SessionLog,
        cwd: Path,
        model: ModelRef,
        thinking: ThinkingLevel,
        reason: SessionChangeReason,
    ) -> tuple[AgentEvent, ...]:
        """Go on with `log`; without an await, so that no interruption leaves half a change."""
        before = self._conversation
        if cwd != before.cwd:
            self._approvals = self._services.make_approvals(cwd, self.permission_mode)
        self._context_files = load_context_files(self._services.user_config_dir, cwd)
        self._conversation = after = converse(
            self._services, log, cwd, model, thinking, self._context_files
        )
        if reason == "compacted":
            after.inbox, after.files, after.todos = before.inbox, before.files, before.todos
            self._workers.past.remember(before.log)
        after.told_note = before.told_note
        self._workers.ahead.drop()
        before.log.close()
        return (
            self._session_changed(reason),
            ModelChanged(model.name, after.model_info.window),
            after.totals,
            TodosChanged(self.todos),
        )

    def _session_changed(self, reason: SessionChangeReason) -> SessionChanged:
        log = self.log
        return SessionChanged(log.header.id, log.path, log.name, reason)
