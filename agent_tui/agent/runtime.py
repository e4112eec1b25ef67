"""One conversation: the only writer of its session log, and the interface for front ends."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from agent_tui.agent.activity import Activity, Emit, LastTurn
from agent_tui.agent.compaction.background import BackgroundSummary, Pause
from agent_tui.agent.compaction.cache_clock import ColdPrice
from agent_tui.agent.compaction.compactor import Compactor, Confirm
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.guarded_part import make_parts, part_itself
from agent_tui.agent.part import Part, abilities_of
from agent_tui.agent.part_tools import ToolboxWithParts
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session.manager import SessionManager
from agent_tui.agent.session.opening import (
    choose_model,
    choose_thinking,
    interruption_note,
    learn_model,
)
from agent_tui.agent.session.restoring import FileRestorer
from agent_tui.agent.turn.command_network import CommandNetwork
from agent_tui.agent.turn.limit_wait import LimitWait, stop_wait, wait_to_continue
from agent_tui.agent.turn.pending_approvals import PendingApprovals, close_walls
from agent_tui.agent.turn.pins import PinKeeper
from agent_tui.agent.turn.tool_calls import ToolRunner
from agent_tui.agent.turn.tool_services import ToolServices
from agent_tui.agent.turn.turn import Turn
from agent_tui.agent.turn.user_command import run_user_command
from agent_tui.agent.turn.user_message import NewMessage, NoteToModel
from agent_tui.compaction.outcome import CompactionPreview
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.proposal import Decision, Proposal
from agent_tui.config import PermissionMode, Settings
from agent_tui.errors import AgentTuiError
from agent_tui.events import (
    AgentEvent,
    JobEnded,
    JobStarted,
    Notice,
    TurnFinished,
)
from agent_tui.messages import ImageContent, Job, JsonObject, ThinkingLevel, UserMessage
from agent_tui.providers.base import ModelRef
from agent_tui.providers.client import OnProgress
from agent_tui.sessions.file.writer import SessionState
from agent_tui.sessions.lineage.chain import PastSessions, ProjectSessions, SessionChain
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.pins import pin_of, unpin_entry
from agent_tui.tools.form import CANCELLED, Elicitation, FormFiller

PartT = TypeVar("PartT", bound=Part)
ResultT = TypeVar("ResultT")

_LEFT_UNDONE = "The work of a feature ended without a result."


MakeNetwork: TypeAlias = Callable[[PendingApprovals, Callable[[], Conversation]], CommandNetwork]
"""Makes what decides on connections, for answers and the present conversation of a runtime."""


class AgentRuntime:
    """A conversation and everything a user can do with it.

    One activity (a turn, a compaction, a command of the user's) runs at a time. Consume the
    generators with ``contextlib.aclosing``. `abort` ends the activity, whose last events are still
    delivered. Quick changes return their events.

    Attributes:
        services: What all conversations share: settings, session store, trust, tools.
        planner: Plans compactions.
        sessions: Opens, forks, names and leaves sessions; holds the present conversation.
        files: Restores files to their state at an earlier entry.
        past: Reads the sessions that the present one continues.
        pending_approvals: Takes the answers to `ApprovalRequested`.
        network: Decides on connections that commands want.
        aborts: How often `abort` was called.
        can_wake: Whether the front begins the turns of `turn_for_news`.

    Args:
        services: See above.
        planner: See above.
        model: The model of the first session.
        cwd: Its workspace.
        mode: Its permission mode.
        make_network: Makes what decides on connections that commands want.
    """

    def __init__(
        self,
        services: RuntimeServices,
        planner: CompactionPlanner,
        model: ModelRef,
        cwd: Path,
        mode: PermissionMode,
        make_network: MakeNetwork = lambda _pending, _conversation: CommandNetwork(),
    ) -> None:
        self._activity: Activity | None = None
        self._fill_form: FormFiller | None = None
        self._beside: set[asyncio.Task[object]] = set()
        self.aborts = 0
        self._emit: Emit | None = None
        self._untold: list[Notice] = []
        self.can_wake = False
        self._background = BackgroundSummary(planner)
        self._pause = Pause()
        self.past = PastSessions(services.store)
        self.services = services = replace(
            services, toolbox=ToolboxWithParts(services.toolbox, lambda: self.parts)
        )
        self.planner = planner
        self.pending_approvals = PendingApprovals(self._note_state)
        self.sessions = SessionManager(
            services,
            self._background,
            self.past,
            lambda: self.is_busy,
            partial(make_parts, services.features, self, self._tell_fault),
            model=model,
            cwd=cwd,
            mode=mode,
        )
        self.network = make_network(self.pending_approvals, lambda: self.conversation)
        self.files = FileRestorer(self.sessions)

    @property
    def conversation(self) -> Conversation:
        """The present conversation: its log, model, permissions, usage and totals."""
        return self.sessions.conversation

    @property
    def parts(self) -> tuple[Part, ...]:
        """What features do in the present conversation."""
        return self.sessions.parts

    def part(self, kind: type[PartT]) -> PartT:
        """The part of one feature, for its own commands.

        Raises:
            LookupError: The conversation has none.
        """
        for part in map(part_itself, self.parts):
            if isinstance(part, kind):
                return part
        raise LookupError(kind.__name__)

    def let_answer(self, fill: FormFiller) -> None:
        """Let tools ask the user through `fill`, one form at a time."""
        self._fill_form = fill
        self.conversation.fitted = None  # other tools are offered

    @property
    def can_fill_forms(self) -> bool:
        """Whether somebody can fill a form."""
        return self._fill_form is not None

    async def fill_form(self, form: Elicitation) -> JsonObject:
        """Have the user fill `form`, once the front has shown what happened before."""
        if self._activity is not None:
            await self._activity.wait_until_told()
        return await self._fill_form(form) if self._fill_form is not None else CANCELLED

    @property
    def is_busy(self) -> bool:
        """Whether an activity is running."""
        return self._activity is not None

    # Activities

    def submit(
        self,
        text: str,
        images: tuple[ImageContent, ...] = (),
        typed: tuple[str, ...] | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Send a message and run the turn to its end, or the unfinished work of a feature.

        Args:
            text: The message.
            images: What goes with it.
            typed: Its typed parts around pastes, which name skills; None if all of it was typed.
        """
        message = NewMessage(text, images, typed)
        return self.carry_out(lambda emit: self._submit(message, emit))

    def continue_turn(self) -> AsyncGenerator[AgentEvent, None]:
        """Continue after an error, an interruption or a reply cut off by its length."""
        return self._write(self._go_on)

    def turn_for_news(self) -> AsyncGenerator[AgentEvent, None] | None:
        """A turn in which the model learns what it waits for, such as the end of a job.

        Returns:
            Its events; None if there is no news, if the last turn did not come to its end (the user
            stopped it, say), or if something is running.
        """
        is_free = not (self.is_busy or self.is_unfinished or self.conversation.log.is_read_only)
        if is_free and any(part.wake() for part in self.parts):
            return self.continue_turn()
        return None

    def carry_out(
        self, work: Callable[[Emit], Awaitable[object]]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run `work` as an activity, in place of what was left unfinished.

        Args:
            work: Gets a function that takes its events; the last is its one `TurnFinished`.
        """

        async def begin(emit: Emit) -> None:
            self._tell_new_work(emit)
            await work(emit)

        return self._write(begin)

    @property
    def is_compacting(self) -> bool:
        """Whether a compaction is running, whoever asked for it."""
        return self.conversation.is_compacting

    def compact(
        self,
        focus: str = "",
        decided: Decision | None = None,
        confirm: Confirm | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Compact with the strategy in the settings; on failure or abort nothing is written.

        The tiered strategy and a proposal with the user's decisions (`decided`) write a summary to
        a new session file, after `confirm`; other strategies shorten this one.
        """
        strategy = self.conversation.settings.strategy
        if strategy != "tiered" and decided is None:
            return self.compact_here(strategy, focus)
        return self._write(lambda emit: self._compact(focus, emit, decided, confirm))

    def compact_here(self, strategy: str, focus: str = "") -> AsyncGenerator[AgentEvent, None]:
        """Compact in place, in this session file; on failure or abort nothing is written."""
        return self._write(lambda emit: self._compactor().compact_here(strategy, focus, emit))

    async def propose_compaction(self, on_progress: OnProgress, *, asks_model: bool) -> Proposal:
        """Propose what ``/compact`` would keep, for the user to decide; writes nothing.

        Raises:
            CompactionError: There is nothing to compact.
        """
        return await self._compactor().propose(on_progress, asks_model=asks_model)

    async def preview_compaction(self) -> CompactionPreview:
        """What a compaction would do now; writes nothing and asks no model."""
        return await self._compactor().preview()

    def cold_price(self) -> ColdPrice | None:
        """What the next message costs with a cold cache; None unless it is worth a notice."""
        return None if self.is_busy else self._compactor().cold_price()

    def run_bash(self, command: str, *, in_context: bool) -> AsyncGenerator[AgentEvent, None]:
        """Run a command that the user typed, without asking for permission."""
        return self._write(
            lambda emit: run_user_command(self.conversation, command, in_context, emit)
        )

    async def run_beside(self, work: Coroutine[object, object, ResultT]) -> ResultT | None:
        """Run `work` beside the conversation, also during a turn; returns its result.

        `abort` stops it, too; then the result is None.
        """
        running = asyncio.create_task(work)
        self._beside.add(running)
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait((running,))
            raise
        finally:
            self._beside.discard(running)
        return None if running.cancelled() else running.result()

    @property
    def is_busy_beside(self) -> bool:
        """Whether work beside the conversation is running, such as a side question."""
        return bool(self._beside)

    def abort(self, *, ends_wait: bool = True) -> None:
        """Stop the running activity and work beside it; its generator ends after its last events.

        Args:
            ends_wait: Whether the user stops it. If the program ends, a wait for a model's limit
                continues when the session is opened again.
        """
        self.aborts += 1
        for running in self._beside:
            running.cancel()
        if self._activity is not None:
            if ends_wait:
                stop_wait(self.conversation)
            self._activity.abort()

    async def aclose(self) -> tuple[Notice, ...]:
        """Abort the running activity, end background work, and close the session file.

        Returns:
            What to tell the user about files that commands left.
        """
        if self._activity is not None:
            await self._activity.stop()
        self._pause.end()
        await self._background.aclose()
        await self.end_jobs()
        notices = await close_walls(self.services, self.conversation)
        for part in self.parts:
            await part.close()
        self.sessions.leave()
        self.conversation.log.close()
        return notices

    # Background commands

    def listen_to_jobs(
        self, listener: Callable[[AgentEvent], None], *, can_wake: bool = False
    ) -> None:
        """Call `listener` on the event loop when a background command begins or ends.

        It also gets notices of refused connections while no activity runs.

        Args:
            listener: Takes the events.
            can_wake: Whether the front looks for `turn_for_news` after each of them and each turn.
        """
        self.can_wake = can_wake
        self.network.listen(listener)
        self.conversation.jobs.listen(
            lambda job: listener(JobEnded(job) if job.ending else JobStarted(job))
        )

    async def end_jobs(self) -> tuple[Job, ...]:
        """Stop the running background commands; returns them in their final state."""
        return await self.conversation.jobs.leave()

    # Queue

    def enqueue(
        self,
        text: str,
        images: tuple[ImageContent, ...] = (),
        typed: tuple[str, ...] | None = None,
        *,
        shown: str = "",
        is_command: bool = False,
    ) -> tuple[AgentEvent, ...]:
        """Queue `text` for delivery before the next request of the running turn.

        Args:
            text: The message.
            images: What goes with it.
            typed: Its typed parts around pastes, which name skills; None if all of it was typed.
            shown: Text to show while it waits; empty to show all of it.
            is_command: Whether it is a command, which waits for the end of the turn.
        """
        queue = self.conversation.queue
        queue.messages.append(NewMessage(text, images, typed, shown, is_command))
        return (queue.change,)

    def tell_model(self, text: str, shown: str) -> tuple[AgentEvent, ...]:
        """Tell the model what the user did, before the next request or at the end of the turn.

        Args:
            text: What the model reads.
            shown: One line for the user while it waits.
        """
        queue = self.conversation.queue
        queue.notes.append(NoteToModel(text, shown))
        return (queue.change,)

    # Settings of the conversation

    def set_model(self, model: ModelRef) -> tuple[AgentEvent, ...]:
        """Use `model` from the next request on."""
        self.sessions.require_writable()
        self.conversation.stands_in_for = None
        return choose_model(self.conversation, model, self.services)

    def set_thinking(self, level: ThinkingLevel) -> tuple[AgentEvent, ...]:
        """Ask the model to think more or less from the next request on."""
        self.sessions.require_writable()
        return choose_thinking(self.conversation, level, self.services)

    def drop_skill(self, name: str) -> bool:
        """Take a skill's text out of the context; false if it is not in use."""
        self.sessions.require_writable()
        entry = self.conversation.skills_in_use().get(name.lower())
        pin = pin_of(entry) if entry is not None else None
        if pin is not None:
            self.conversation.log.append(unpin_entry((pin.path,)))
        return pin is not None

    def use_settings(self, settings: Settings) -> None:
        """Apply the settings for compaction, waits and time limits, and those of features.

        Others are built into services and take effect at the next start.
        """
        changes = {
            "compaction": settings.compaction,
            "bash_timeout_s": settings.bash_timeout_s,
            "limit_wait_h": settings.limit_wait_h,
            **settings.brought(),
        }
        self.services.settings = self.services.settings.model_copy(update=changes)
        self._background.drop()

    @property
    def unfinished_wait(self) -> LimitWait | None:
        """The wait for a model's limit in which the session was left, for `continue_turn`."""
        return None if self.is_busy else wait_to_continue(self.conversation)

    @property
    def is_unfinished(self) -> bool:
        """Whether the last turn or other work did not come to its end, so that it can continue."""
        is_cut_off = bool(interruption_note(self.conversation.log))
        return is_cut_off or any(part.is_open or part.must_finish for part in self.parts)

    async def refresh_usage(self) -> tuple[AgentEvent, ...]:
        """Ask the model's own server for its window, then count again off the event loop."""
        conversation = self.conversation
        learned = await learn_model(conversation, self.services)
        return (*learned, *await conversation.refresh_usage())

    def drop_planned_compaction(self) -> None:
        """Drop what the next compaction was to keep: messages in the context were replaced."""
        self._background.drop()

    def history(self) -> SessionChain:
        """This conversation from its first session on, and what else `recall` may search."""
        log = self.conversation.log
        return self._history_of(log, Path(log.header.cwd))

    def _history_of(self, log: SessionLog, cwd: Path) -> SessionChain:
        services = self.services
        reaches_others = services.keeps_sessions and services.settings.recall_other_sessions
        project = ProjectSessions(services.store, cwd) if reaches_others else None
        return SessionChain(log, self.past, project)

    # How activities are carried out

    async def _write(
        self, work: Callable[[Emit], Awaitable[object]]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run an activity that writes to the session."""
        self.sessions.prepare_to_write()
        async with aclosing(self.run(work)) as events:
            async for event in events:
                yield event

    async def run(
        self, work: Callable[[Emit], Awaitable[object]]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run an activity that checks itself whether it may write to the session."""
        if self._activity is not None:
            raise AgentTuiError("Something is already running.", "{stop}")

        async def ask_meanwhile(emit: Emit) -> None:
            self._emit = emit
            self._tell_untold()
            try:
                async with self.network.activity(emit):
                    await work(emit)
            finally:
                self._emit = None

        self._pause.end()
        self._activity = activity = Activity(ask_meanwhile)
        self._note_state()
        try:
            async with aclosing(activity.events()) as events:
                async for event in events:
                    if isinstance(event, TurnFinished):
                        self._activity = None
                        self._note_state()
                    yield event
        finally:
            if self._activity is activity:
                self._activity = None
            if self._activity is None:
                self._note_state()
                conversation, compactor = self.conversation, self._compactor()
                self._pause.begin(
                    compactor.seconds_to_ask_in_pause(),
                    compactor.ask_in_pause,
                    self.services.sleep,
                    lambda: conversation is self.conversation,
                )

    def _note_state(self) -> None:
        """Tell other programs what happens in the present session."""
        state: SessionState = "working" if self.is_busy else "idle"
        self.conversation.log.note_state("waiting" if self.pending_approvals.is_any else state)

    def _tell_fault(self, notice: Notice, fault: BaseException) -> None:
        """Report a fault of a part; from another thread, or if no activity runs, with the next."""
        self.services.report_fault(fault)
        self._untold.append(notice)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        self._tell_untold()

    def _tell_untold(self) -> None:
        if self._emit is not None:
            untold, self._untold = self._untold, []
            for notice in untold:
                self._emit(notice)

    async def _submit(self, message: NewMessage, emit: Emit) -> None:
        if (part := self._open_part) is not None:
            await self._drive(part, message, emit)
        else:
            await self.make_turn(emit).run(message)

    async def _drive(self, part: Part, message: NewMessage | None, emit: Emit) -> None:
        """Have `part` continue its work; a turn follows if it fails before it has done anything."""
        work, before = LastTurn(emit), self.conversation.log.leaf_id
        try:
            await part.drive(message, work.emit)
        finally:
            if work.event is not None:
                emit(work.event)
        if work.event is None and self.conversation.log.leaf_id == before:
            await self.make_turn(emit).run(message)
        elif work.event is None:
            emit(TurnFinished("error", _LEFT_UNDONE, can_continue=True))

    async def _go_on(self, emit: Emit) -> None:
        for part in self.parts:
            if part.must_finish and not await part.finish(emit):
                return
        if (part := self._open_part) is not None:
            await self._drive(part, None, emit)
        else:
            self._tell_new_work(emit)
            await self.make_turn(emit).run(None)

    def _tell_new_work(self, emit: Emit) -> None:
        for part in self.parts:
            part.before_work(emit)

    @property
    def _open_part(self) -> Part | None:
        """The first part with unfinished work; None if there is none."""
        return next((part for part in self.parts if part.is_open), None)

    async def _compact(
        self, focus: str, emit: Emit, decided: Decision | None, confirm: Confirm | None
    ) -> None:
        child = await self._compactor().compact_to_child(focus, emit, decided, confirm)
        if child is None:
            return
        for event in self.sessions.follow_compaction(*child):
            emit(event)
        self._note_state()
        for event in await self.conversation.refresh_usage():
            emit(event)
        for part in self.parts:
            await part.after_compaction(child[1], emit)

    def make_turn(self, emit: Emit) -> Turn:
        """Make a turn of the present conversation, whose events go to `emit`."""
        conversation, services = self.conversation, self.services
        pins = PinKeeper(conversation, emit)

        async def get_ready() -> None:
            await self._take_up_tools(conversation, emit)
            await pins.refresh()

        return Turn(
            conversation,
            services.provider,
            ToolRunner(conversation, self._tool_services(emit), emit, pins, self.parts),
            self._compactor(),
            emit,
            get_ready,
            services.most_replies,
            self.parts,
        )

    async def run_helper(
        self, helper: Conversation, task: str, most_replies: int, emit: Emit
    ) -> None:
        """Have a helper do `task` in one turn, which asks nobody; its jobs end with it.

        Args:
            helper: Its conversation. It can recall what the present one can.
            task: The only message it gets.
            most_replies: The turn ends after so many.
            emit: Takes the events of the turn.
        """
        services, cwd = helper.services, self.conversation.cwd
        parts = tuple(filter(None, (part.for_helper(helper) for part in self.parts)))
        background = BackgroundSummary(self.planner)
        compactor = Compactor(helper, services, self.planner, background, parts)
        tools = ToolServices(
            pending=PendingApprovals(),
            compact=compactor.answer_call,
            history=lambda: self._history_of(helper.log, cwd),
            abilities=abilities_of(parts, emit),
        )
        turn = Turn(
            helper,
            services.provider,
            ToolRunner(helper, tools, emit, parts=parts),
            compactor,
            emit,
            most_replies=most_replies,
            parts=parts,
        )
        # Not recorded as the user's: files that it mentions would be attached without asking.
        helper.append(UserMessage(content=task))
        try:
            await turn.run(None)
        finally:
            await background.aclose()
            await helper.jobs.leave()

    async def _take_up_tools(self, conversation: Conversation, emit: Emit) -> None:
        """Update the tools on offer; they stay fixed within a turn, for the prompt cache."""

        def tell(text: str) -> None:
            emit(Notice("warning", text))

        if await self.services.remote_tools.take_up(conversation.cwd, tell):
            conversation.fitted = None

    def _compactor(self) -> Compactor:
        return Compactor(
            self.conversation, self.services, self.planner, self._background, self.parts
        )

    def _tool_services(self, emit: Emit) -> ToolServices:
        """The services that the tool calls of a turn need."""
        return ToolServices(
            pending=self.pending_approvals,
            compact=self._compactor().answer_call,
            history=self.history,
            network=self.network,
            use_mode=self.sessions.use_mode,
            abilities=abilities_of(self.parts, emit),
            fill_form=self.fill_form if self.can_fill_forms else None,
        )
