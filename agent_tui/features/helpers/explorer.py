"""Run a helper: a turn in a separate session, which returns a single answer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import Host
from agent_tui.agent.prompt.fitted_prompt import PromptFitter
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session.opening import open_conversation
from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.commands.core.short_words import count_text
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
from agent_tui.features.helpers.kinds import (
    READING_TOOLS,
    AgentDefinition,
    find_agents,
    helper_fitter,
)
from agent_tui.features.helpers.tool_subset import ToolSubset
from agent_tui.messages import AssistantMessage, ToolDetails
from agent_tui.permissions.verdict import Permissions
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import Header, MessageEntry, SessionInfoEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.notes import AgentRun, run_of
from agent_tui.tools.base import Toolbox, ToolOutput
from agent_tui.tools.job_table import JobTable
from agent_tui.tools.reading_helpers import ReadingHelpers
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
        host: Has the conversation they work for, with its folder, model and rules.
        emit: Takes the new totals, and word of slow replies.
    """

    def __init__(self, host: Host, emit: Emit) -> None:
        self._host = host
        self._conversation = host.conversation
        self._services = host.services
        self._emit = emit

    def _open(
        self,
        name: str,
        model: ModelRef,
        toolbox: Toolbox,
        cwd: Path,
        permissions: Permissions,
        fit: PromptFitter,
    ) -> Conversation:
        """A helper's conversation; its session names this one as its parent."""
        conversation, services = self._conversation, self._services
        log = _new_log(conversation, services, model)
        helper = open_conversation(
            replace(services, toolbox=toolbox),
            log,
            cwd,
            model,
            conversation.thinking,
            permissions,
            fit,
            JobTable(),
        )
        log.append(SessionInfoEntry(name=name))
        return helper

    async def _run(self, helper: Conversation, task: str, say: Callable[[str], None]) -> ToolOutput:
        """Have `helper` work on `task`, and return its answer; closes its session.

        Its usage is recorded however it ends. Cancelling stops it.
        """
        watch = _Watch(helper, say, self._emit)
        conversation = self._conversation
        try:
            await self._host.run_helper(helper, task, MOST_REPLIES, watch.take)
        finally:
            run = run_of(helper.log, helper.model.name)
            conversation.count_run(run)
            self._emit(conversation.totals)
            helper.log.close()
        return _output(helper.log, watch.ending, run, conversation.output_limits())


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
        conversation, toolbox = self._conversation, ToolSubset(self._services.toolbox, tools)
        return self._open(
            f"{kind}: {short_task(task)}",
            self._model(definition),
            toolbox,
            conversation.cwd,
            conversation.permissions.for_reading(),
            helper_fitter(definition, toolbox.specs, conversation.cwd),
        )

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
    summary = f"{count_text(run.requests, 'step')}, {tokens:,} tokens{price}"
    is_error = ending.outcome != "done" and not answer
    return ToolOutput(text or "(no answer)", ToolDetails(summary=summary), is_error=is_error)


def _why_stopped(ending: TurnFinished, run: AgentRun) -> str:
    if ending.outcome == "limit" and run.requests >= MOST_REPLIES:
        return f"Stopped after {MOST_REPLIES} replies, the limit."
    return f"Stopped early: {ending.error or ending.outcome}"
