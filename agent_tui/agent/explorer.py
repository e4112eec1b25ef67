"""Run a helper: a turn in a separate session, which returns a single answer."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_tui.agent.activity import Emit
from agent_tui.agent.compaction.background import BackgroundSummary
from agent_tui.agent.compaction.compactor import Compactor
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.helper_kinds import (
    READING_TOOLS,
    AgentDefinition,
    find_agents,
    helper_fitter,
)
from agent_tui.agent.part import Part, abilities_of
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session.opening import FolderFiles, open_conversation
from agent_tui.agent.turn.pending_approvals import PendingApprovals
from agent_tui.agent.turn.tool_calls import ToolRunner, ToolServices
from agent_tui.agent.turn.turn import Turn
from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.config.model_addresses import display_address
from agent_tui.durations import format_duration
from agent_tui.errors import AgentTuiError, ToolError
from agent_tui.events import (
    AgentEvent,
    LimitWaitEnded,
    LimitWaitStarted,
    ReplyAwaited,
    ReplyFinished,
    RetryScheduled,
    ToolStarted,
    TurnFinished,
)
from agent_tui.messages import AssistantMessage, ToolDetails, ToolSpec, UserMessage
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import Header, MessageEntry, SessionInfoEntry
from agent_tui.sessions.lineage.chain import PastSessions, ProjectSessions, SessionChain
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.notes import AgentRun, run_of
from agent_tui.tools.base import ToolOutput
from agent_tui.tools.explore import ReadingHelpers
from agent_tui.tools.job_table import JobTable
from agent_tui.tools.registry import ToolSubset
from agent_tui.tools.shorten import OutputLimits, keep_ends

MOST_REPLIES = 40
"""Most replies of one helper. Questions about a project take 5 to 20."""

_TOLD_BEFORE = 3
"""This many replies before the limit, the helper is told to finish."""

_COME_TO_AN_END = "You have {left} replies left. Answer now with what you know."
_NAME_CHARS = 60


@dataclass(slots=True)
class _Watch:
    """Reports what a helper does as it works, and keeps how its turn ended."""

    conversation: Conversation
    say: Callable[[str], None]
    emit: Emit
    replies: int = 0
    ending: TurnFinished = field(default_factory=lambda: TurnFinished("aborted"))

    def take(self, event: AgentEvent) -> None:
        """Handle one event of the helper's turn."""
        match event:
            case ToolStarted():
                self.say(f"{event.title}\n")
            case RetryScheduled():
                self.say(f"retrying: {event.reason}\n")
            case LimitWaitStarted() | LimitWaitEnded():
                self.emit(event)
            case ReplyAwaited():
                self.say(f"waiting for the model ({format_duration(event.waited_s)})\n")
                self.emit(event)
            case ReplyFinished(message=message):
                self.replies += 1
                if message.tool_calls and self.replies == MOST_REPLIES - _TOLD_BEFORE:
                    told = _COME_TO_AN_END.format(left=_TOLD_BEFORE)
                    self.conversation.queue.messages.append(NewMessage(told))
            case TurnFinished():
                self.ending = event
            case _:
                pass


class HelperStarter:
    """Starts helpers for one conversation.

    Args:
        conversation: The one they work for, with its folder, model and rules.
        services: What all conversations share.
        past: The earlier sessions, for `recall`.
        emit: Takes the new totals, and word of slow replies.
        parts: What features do in that conversation.
    """

    def __init__(
        self,
        conversation: Conversation,
        services: RuntimeServices,
        past: PastSessions,
        emit: Emit,
        parts: Sequence[Part],
    ) -> None:
        self._conversation = conversation
        self._services = services
        self._past = past
        self._emit = emit
        self._parts = parts

    def _open(
        self,
        name: str,
        model: ModelRef,
        tools: Collection[str],
        cwd: Path,
        permissions: PermissionEngine,
    ) -> tuple[Conversation, Sequence[ToolSpec]]:
        """A helper's conversation, and its tools; its session names this one as its parent."""
        conversation, services = self._conversation, self._services
        toolbox = ToolSubset(services.toolbox, tools)
        settings = services.settings.model_copy(update={"hint_earlier_work": False})
        log = _new_log(conversation, services, model)
        helper = open_conversation(
            replace(services, toolbox=toolbox, settings=settings),
            log,
            cwd,
            model,
            conversation.thinking,
            permissions,
            FolderFiles((), ()),
            JobTable(),
        )
        log.append(SessionInfoEntry(name=name))
        return helper, toolbox.specs

    async def _run(self, helper: Conversation, task: str, say: Callable[[str], None]) -> ToolOutput:
        parts = tuple(filter(None, (part.for_helper(helper) for part in self._parts)))
        return await _run_helper(
            helper, self._conversation, self._past, parts, task, say, self._emit
        )


class Explorer(HelperStarter, ReadingHelpers):
    """Helpers that only read."""

    async def answer_call(self, task: str, agent: str, say: Callable[[str], None]) -> ToolOutput:
        """Have a helper work on `task`, and return its answer.

        Args:
            task: The only message it gets.
            agent: Name of the kind of helper; empty for the general one.
            say: Takes a line for each step.

        Raises:
            ToolError: There is no such kind of helper.
        """
        definition = await asyncio.to_thread(self._definition_of, agent) if agent else None
        helper = self._helper(definition, task)
        return await self._run(helper, task, say)

    def _definition_of(self, agent: str) -> AgentDefinition:
        services = self._services
        found = find_agents(self._conversation.cwd, services.user_config_dir, services.trust)
        definition = found.by_name.get(agent)
        if definition is None:
            names = ", ".join(found.by_name) or "none; omit agent"
            problems = "".join(f"\n{problem}" for problem in found.problems)
            raise ToolError(f"There is no helper {agent!r}. Available: {names}.{problems}")
        return definition

    def _helper(self, definition: AgentDefinition | None, task: str) -> Conversation:
        tools = definition.tools if definition else READING_TOOLS
        kind = definition.name if definition else "explore"
        conversation = self._conversation
        helper, specs = self._open(
            f"{kind}: {short_task(task)}",
            self._model(definition),
            tools,
            conversation.cwd,
            conversation.permissions.for_reading(),
        )
        helper.fit = helper_fitter(definition, specs, conversation.cwd)
        return helper

    def _model(self, definition: AgentDefinition | None) -> ModelRef:
        if definition is None or not definition.model:
            return self._conversation.model
        try:
            return self._services.resolve_model(definition.model)
        except AgentTuiError:
            return self._conversation.model


def short_task(task: str) -> str:
    """The first words of `task`, for a name."""
    return " ".join(task.split())[:_NAME_CHARS]


async def _run_helper(
    helper: Conversation,
    conversation: Conversation,
    past: PastSessions,
    parts: Sequence[Part],
    task: str,
    say: Callable[[str], None],
    emit: Emit,
) -> ToolOutput:
    """Have `helper` work on `task` for `conversation`, and return its answer; closes its session.

    Its usage is recorded however it ends. Cancelling stops it.
    """
    background = BackgroundSummary(helper.services.compaction)
    compactor = Compactor(helper, helper.services, background, parts)
    watch = _Watch(helper, say, emit)
    tools = ToolServices(
        pending=PendingApprovals(),
        compact=compactor.answer_call,
        history=lambda: _history(helper, conversation, past),
        abilities=abilities_of(parts, watch.take),
    )
    turn = Turn(
        helper,
        helper.services.provider,
        ToolRunner(helper, tools, watch.take, parts=parts),
        compactor,
        watch.take,
        most_replies=MOST_REPLIES,
        parts=parts,
    )
    # Not recorded as the user's: files that it mentions would be attached without asking.
    helper.append(UserMessage(content=task))
    try:
        await turn.run(None)
    finally:
        run = run_of(helper.log, helper.model.name)
        conversation.count_run(run)
        emit(conversation.totals)
        helper.log.close()
        await background.aclose()
        await helper.jobs.leave()
    return _output(helper.log, watch.ending, run, conversation.output_limits())


def _history(helper: Conversation, conversation: Conversation, past: PastSessions) -> SessionChain:
    """What a helper's `recall` searches: the conversation it works for, and its project."""
    services, cwd = conversation.services, conversation.cwd
    reaches_others = services.keeps_sessions and services.settings.recall_other_sessions
    project = ProjectSessions(services.store, cwd) if reaches_others else None
    return SessionChain(helper.log, past, project)


def _new_log(conversation: Conversation, services: RuntimeServices, model: ModelRef) -> SessionLog:
    """The session of a helper, which names that of `conversation` as its parent."""
    parent = conversation.log
    header = Header(
        cwd=parent.header.cwd,
        provider=model.provider,
        model_id=model.model_id,
        base_url=display_address(model.base_url) or None,
        thinking_level=conversation.thinking,
        parent_session=str(parent.path or parent.header.id),
    )
    if services.keeps_sessions and parent.path is not None:
        return services.store.create_explored(header, parent.header.id)
    return SessionLog.create(None, header)


def _output(
    log: SessionLog, ending: TurnFinished, run: AgentRun, limits: OutputLimits
) -> ToolOutput:
    """The helper's last text, and where its whole session can be found."""
    said = (entry.message for entry in reversed(log.entries) if isinstance(entry, MessageEntry))
    replies = (message for message in said if isinstance(message, AssistantMessage))
    answer = next((reply.text.strip() for reply in replies if reply.text.strip()), "")
    kept = keep_ends(answer, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    session = log.header.id[:8]
    notes = [] if ending.outcome == "done" else [_why_stopped(ending, run)]
    if log.path:
        notes.append(f"Everything it read is in session {session}: recall {session}:ENTRY")
    text = "\n\n".join(filter(None, [kept.text, "\n".join(f"({note})" for note in notes)]))
    tokens = run.usage.context_tokens
    price = f", ${run.usage.cost.total:.2f}" if run.usage.cost.total else ""
    summary = f"{run.requests} steps, {tokens:,} tokens{price}"
    is_error = ending.outcome != "done" and not answer
    return ToolOutput(text or "(no answer)", ToolDetails(summary=summary), is_error=is_error)


def _why_stopped(ending: TurnFinished, run: AgentRun) -> str:
    if ending.outcome == "limit" and run.requests >= MOST_REPLIES:
        return f"Stopped after {MOST_REPLIES} replies, the limit."
    return f"Stopped early: {ending.error or ending.outcome}"
