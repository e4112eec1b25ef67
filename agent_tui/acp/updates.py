"""The only place that translates events of the agent into updates of the protocol."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from acp.helpers import (
    plan_entry,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_user_message_text,
)
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    Cost,
    FileEditToolCallContent,
    SessionInfoUpdate,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolKind,
    UsageUpdate,
    UserMessageChunk,
)

from agent_tui.acp.contents import Content, changed_files, in_lines, output_of
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.attachments import without_attachments
from agent_tui.commands.event_lines import (
    RetryLines,
    SaidOnce,
    compaction_line,
    event_line,
    turn_end_line,
)
from agent_tui.events import (
    AgentEvent,
    BashFinished,
    BashStarted,
    ContextChanged,
    ReplyAwaited,
    RetryScheduled,
    SessionChanged,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnRecorded,
)
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    Todo,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.safe_text import safe_text
from agent_tui.sessions.entries import CompactionEntry, Entry, MessageEntry

Update: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | SessionInfoUpdate
    | UsageUpdate
)

_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("read", "ls", "recall", "why"), "read"),
    **dict.fromkeys(("grep", "find", "explore"), "search"),
    **dict.fromkeys(("edit", "write", "apply_patch"), "edit"),
    **dict.fromkeys(("bash", "job"), "execute"),
    **dict.fromkeys(("todo", "plan", "scope", "compact", "skill"), "think"),
    "fetch": "fetch",
}
_PATHS = ("path", "file_path")


class Updates:
    """Translates events in order, for one conversation."""

    def __init__(self, runtime: AgentRuntime) -> None:
        self._runtime = runtime
        self._output: dict[str, str] = {}
        self._retries = RetryLines()
        self._once = SaidOnce()

    def of(self, event: AgentEvent) -> Iterator[Update]:
        """The updates for `event`; may read edited files."""
        for one in self._once.of(event):
            yield from self._of(one)

    def _of(self, event: AgentEvent) -> Iterator[Update]:
        match event:
            case TextDelta(text):
                yield update_agent_message_text(safe_text(text))
            case ThinkingDelta(text) if text:
                yield update_agent_thought_text(safe_text(text))
            case ReplyAwaited():
                yield update_agent_thought_text(f"\n\n*{event_line(event)}*\n\n")
            case TurnFinished():
                if line := turn_end_line(event):
                    yield said(in_lines(line))
            case TurnRecorded():
                pass  # editors show changes and times themselves
            case RetryScheduled():
                yield said(f"*{in_lines(self._retries.line(event))}*")
            case TodosChanged(todos):
                yield plan_of(todos)
            case ContextChanged():
                yield self.usage()
            case SessionChanged(name=name):
                yield SessionInfoUpdate(session_update="session_info_update", title=name or None)
            case (
                ToolStarted() | ToolOutputDelta() | ToolFinished() | BashStarted() | BashFinished()
            ):
                yield self._of_call(event)
            case _:
                if line := event_line(event):
                    yield said(f"*{in_lines(line)}*")

    def _of_call(
        self, event: ToolStarted | ToolOutputDelta | ToolFinished | BashStarted | BashFinished
    ) -> Update:
        cwd, call_id = self._runtime.conversation.cwd, event.call_id
        output = self._output.pop(call_id, "")
        match event:
            case ToolStarted(name=name, arguments=arguments, title=title):
                return started(call_id, name, title, arguments, cwd)
            case BashStarted(command=command):
                return started(call_id, "bash", command, {"command": command}, cwd)
            case ToolOutputDelta(text=text):
                self._output[call_id] = output + text
                return _progress(call_id, output + text)
            case ToolFinished(message=message):
                return finished(call_id, message, cwd)
            case BashFinished(message=ran):
                is_error = bool(ran.exit_code) or ran.cancelled
                return _ended(call_id, [output_of(ran.output)], is_error=is_error)

    def usage(self) -> UsageUpdate:
        """How full the context is, and the cost so far if prices are known."""
        conversation = self._runtime.conversation
        used, window = conversation.usage.used, conversation.usage.window
        known = conversation.known_cost_usd
        cost = None if known is None else Cost(amount=known, currency="USD")
        return UsageUpdate(session_update="usage_update", used=used, size=window, cost=cost)


def said(markdown: str) -> AgentMessageChunk:
    """A text for the user, separate from the model's."""
    return update_agent_message_text(f"\n\n{markdown}\n\n")


def plan_of(todos: Sequence[Todo]) -> AgentPlanUpdate:
    """The model's plan."""
    return update_plan(plan_entry(safe_text(todo.text), status=todo.status) for todo in todos)


def started(call_id: str, name: str, title: str, arguments: JsonObject, cwd: Path) -> ToolCallStart:
    """The start of a call."""
    named = [arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)]
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=call_id,
        title=safe_text(title, keep_newlines=False),
        kind=_KINDS.get(name, "other"),
        status="in_progress",
        locations=[ToolCallLocation(path=str(cwd / str(path))) for path in named],
        raw_input=arguments,
    )


def finished(call_id: str, message: ToolResultMessage, cwd: Path) -> ToolCallProgress:
    """A call with its result."""
    changed = changed_files(message.tool_details.diff or "", cwd)
    content = changed or [output_of(message.text)]
    return _ended(call_id, content, is_error=message.is_error)


def _ended(call_id: str, content: Sequence[Content], *, is_error: bool) -> ToolCallProgress:
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=call_id,
        status="failed" if is_error else "completed",
        content=list(content),
    )


def asked(question_id: str, title: str) -> ToolCallStart:
    """A question that belongs to no call, before it is asked."""
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=question_id,
        title=safe_text(title, keep_newlines=False),
        kind="other",
        status="pending",
    )


def to_be_decided(call_id: str, content: Sequence[Content]) -> ToolCallProgress:
    """The subject of a question, before the user is asked."""
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=call_id,
        status="pending",
        content=list(content),
        locations=places_of(content) or None,
    )


def places_of(content: Sequence[Content]) -> list[ToolCallLocation]:
    """The files changed in the contents of a call."""
    return [
        ToolCallLocation(path=each.path)
        for each in content
        if isinstance(each, FileEditToolCallContent)
    ]


def answered(question_id: str) -> ToolCallProgress:
    """Mark a question as completed."""
    return ToolCallProgress(
        session_update="tool_call_update", tool_call_id=question_id, status="completed"
    )


def _progress(call_id: str, output: str) -> ToolCallProgress:
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=call_id,
        content=[output_of(output)],
    )


def replayed(entries: Sequence[Entry], cwd: Path) -> Iterator[Update]:
    """The earlier messages of a session that is opened again."""
    for entry in entries:
        if isinstance(entry, CompactionEntry):
            details = entry.details
            line = compaction_line(
                entry.tokens_before,
                entry.tokens_after,
                details.note,
                is_fallback=details.is_fallback,
            )
            yield said(f"*{in_lines(line)}*")
        elif isinstance(entry, MessageEntry):
            yield from _message(entry.message, cwd)


def _message(message: Message, cwd: Path) -> Iterator[Update]:
    match message:
        case UserMessage():
            yield update_user_message_text(safe_text(without_attachments(message.text)))
        case AssistantMessage():
            if message.text:
                yield update_agent_message_text(safe_text(message.text))
            for call in message.tool_calls:
                title = f"{call.name} {call.subject}".strip()
                yield started(call.id, call.name, title[:200], call.arguments, cwd)
        case ToolResultMessage():
            output = [output_of(message.text)]
            yield _ended(message.tool_call_id, output, is_error=message.is_error)
        case _:
            pass
