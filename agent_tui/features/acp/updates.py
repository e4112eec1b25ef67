"""The only place that translates events of the agent into updates of the protocol."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from acp import schema
from acp.helpers import (
    plan_entry,
    start_tool_call,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)

from agent_tui import events
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.session.spending import known_cost_usd
from agent_tui.attachments import without_attachments
from agent_tui.commands.command_output import result_text
from agent_tui.commands.event_lines import (
    RepeatFilter,
    RetryLines,
    compaction_line,
    event_line,
    turn_end_line,
)
from agent_tui.features.acp.contents import CallContent, file_diffs, in_lines, output_of
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
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.SessionInfoUpdate
    | schema.UsageUpdate
)

_KINDS: dict[str, schema.ToolKind] = {
    **dict.fromkeys(("read", "ls", "recall", "why"), "read"),
    **dict.fromkeys(("grep", "find", "explore"), "search"),
    **dict.fromkeys(("edit", "write", "apply_patch"), "edit"),
    **dict.fromkeys(("bash", "job"), "execute"),
    **dict.fromkeys(("todo", "plan", "scope", "compact", "skill"), "think"),
    **dict.fromkeys(("fetch", "web_search"), "fetch"),
}
_PATHS = ("path", "file_path")


class Updates:
    """Translates events in order, for one conversation."""

    def __init__(self, runtime: AgentRuntime) -> None:
        self._runtime = runtime
        self._output: dict[str, str] = {}
        self._retries = RetryLines()
        self._once = RepeatFilter()

    def of(self, event: events.AgentEvent) -> Iterator[Update]:
        """The updates for `event`; may read edited files."""
        for one in self._once.of(event):
            yield from self._of(one)

    def _of(self, event: events.AgentEvent) -> Iterator[Update]:
        match event:
            case events.TextDelta(text):
                yield update_agent_message_text(safe_text(text))
            case events.ThinkingDelta(text) if text:
                yield update_agent_thought_text(safe_text(text))
            case events.ReplyAwaited():
                yield update_agent_thought_text(f"\n\n*{event_line(event)}*\n\n")
            case events.TurnFinished():
                if line := turn_end_line(event):
                    yield chat_message(in_lines(line))
            case events.TurnRecorded():
                pass  # editors show changes and times themselves
            case events.RetryScheduled():
                yield chat_message(f"*{in_lines(self._retries.line(event))}*")
            case events.TodosChanged(todos):
                yield plan_of(todos)
            case events.ContextChanged():
                yield self.usage()
            case events.SessionChanged(name=name):
                yield schema.SessionInfoUpdate(
                    session_update="session_info_update", title=name or None
                )
            case (
                events.ToolStarted()
                | events.ToolOutputDelta()
                | events.ToolFinished()
                | events.BashStarted()
                | events.BashFinished()
            ):
                yield self._of_call(event)
            case _:
                if line := event_line(event):
                    yield chat_message(f"*{in_lines(line)}*")

    def _of_call(
        self,
        event: events.ToolStarted
        | events.ToolOutputDelta
        | events.ToolFinished
        | events.BashStarted
        | events.BashFinished,
    ) -> Update:
        cwd, call_id = self._runtime.conversation.cwd, event.call_id
        output = self._output.pop(call_id, "")
        match event:
            case events.ToolStarted(name=name, arguments=arguments, title=title):
                return call_start(call_id, name, title, arguments, cwd)
            case events.BashStarted(command=command):
                return call_start(call_id, "bash", command, {"command": command}, cwd)
            case events.ToolOutputDelta(text=text):
                self._output[call_id] = output + text
                return update_tool_call(call_id, content=[output_of(output + text)])
            case events.ToolFinished(message=message):
                return call_result(call_id, message, cwd)
            case events.BashFinished(message=ran):
                is_error = bool(ran.exit_code) or ran.cancelled
                return _call_end(call_id, [output_of(ran.output)], is_error=is_error)

    def usage(self) -> schema.UsageUpdate:
        """How full the context is, and the cost so far if prices are known."""
        conversation = self._runtime.conversation
        used, window = conversation.usage.used, conversation.usage.window
        known = known_cost_usd(conversation)
        cost = None if known is None else schema.Cost(amount=known, currency="USD")
        return schema.UsageUpdate(session_update="usage_update", used=used, size=window, cost=cost)


def chat_message(markdown: str) -> schema.AgentMessageChunk:
    """A text for the user, separate from the model's."""
    return update_agent_message_text(f"\n\n{markdown}\n\n")


def plan_of(todos: Sequence[Todo]) -> schema.AgentPlanUpdate:
    """The model's plan."""
    return update_plan(plan_entry(safe_text(todo.text), status=todo.status) for todo in todos)


def call_start(
    call_id: str, name: str, title: str, arguments: JsonObject, cwd: Path
) -> schema.ToolCallStart:
    """The start of a call."""
    named = [arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)]
    return start_tool_call(
        call_id,
        safe_text(title, keep_newlines=False),
        kind=_KINDS.get(name, "other"),
        status="in_progress",
        locations=[schema.ToolCallLocation(path=str(cwd / str(path))) for path in named],
        raw_input=arguments,
    )


def call_result(call_id: str, message: ToolResultMessage, cwd: Path) -> schema.ToolCallProgress:
    """A call with its result."""
    changed = file_diffs(message.tool_details.diff or "", cwd)
    content = changed or [output_of(result_text(message))]
    return _call_end(call_id, content, is_error=message.is_error)


def _call_end(
    call_id: str, content: Sequence[CallContent], *, is_error: bool
) -> schema.ToolCallProgress:
    status = "failed" if is_error else "completed"
    return update_tool_call(call_id, status=status, content=content)


def question_start(question_id: str, title: str) -> schema.ToolCallStart:
    """A question that belongs to no call, before it is asked."""
    title = safe_text(title, keep_newlines=False)
    return start_tool_call(question_id, title, kind="other", status="pending")


def to_be_decided(call_id: str, content: Sequence[CallContent]) -> schema.ToolCallProgress:
    """The subject of a question, before the user is asked."""
    locations = places_of(content) or None
    return update_tool_call(call_id, status="pending", content=content, locations=locations)


def places_of(content: Sequence[CallContent]) -> list[schema.ToolCallLocation]:
    """The files changed in the contents of a call."""
    return [
        schema.ToolCallLocation(path=each.path)
        for each in content
        if isinstance(each, schema.FileEditToolCallContent)
    ]


def question_end(question_id: str) -> schema.ToolCallProgress:
    """Mark a question as completed."""
    return update_tool_call(question_id, status="completed")


def replay_updates(entries: Sequence[Entry], cwd: Path) -> Iterator[Update]:
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
            yield chat_message(f"*{in_lines(line)}*")
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
                yield call_start(call.id, call.name, title[:200], call.arguments, cwd)
        case ToolResultMessage():
            output = [output_of(result_text(message))]
            yield _call_end(message.tool_call_id, output, is_error=message.is_error)
        case _:
            pass
