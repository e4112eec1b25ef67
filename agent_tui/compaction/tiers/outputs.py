"""Which messages of a conversation are the outcome of an action, and of which."""

from collections.abc import Sequence

from pydantic import JsonValue

from agent_tui.compaction.tiers.actions import action_of, file_key, run_action
from agent_tui.compaction.tiers.model import Action, Output
from agent_tui.compaction.tiers.observations import observed_action, observed_exit_code
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    JsonObject,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)


def read_outputs(messages: Sequence[Message]) -> list[Output | None]:
    """For each message what it is the outcome of; None where it is no outcome.

    Args:
        messages: In the order the model sees them: results directly after their reply.
    """
    reader = _OutputReader()
    return [reader.read(message) for message in messages]


class _OutputReader:
    """Walks the messages in the order the model sees them: results follow their reply."""

    def __init__(self) -> None:
        self._waiting: list[ToolCall] = []
        self._reply: AssistantMessage | None = None
        self._todo = ""
        self._number = 0

    def read(self, message: Message) -> Output | None:
        """What `message` is the outcome of, None where it is no outcome."""
        before, self._reply = self._reply, None
        match message:
            case AssistantMessage():
                self._waiting = list(message.tool_calls)
                self._reply = message
                self._plan(self._waiting)
                return None
            case ToolResultMessage():
                return self._of_result(message)
            case BashExecutionMessage():
                return self._numbered(
                    run_action("bash", message.command), message.output, message.exit_code
                )
            case UserMessage():
                action = observed_action(message, before)
                if action is None:
                    return None
                return self._numbered(action, message.text, observed_exit_code(message.text))

    def _numbered(self, action: Action, text: str, exit_code: int | None) -> Output:
        self._number += 1
        has_failed = exit_code not in (None, 0)
        return Output(action, text, has_failed, self._number, exit_code)

    def _of_result(self, result: ToolResultMessage) -> Output:
        self._number += 1
        call = self._call_of(result)
        action = action_of(call)
        details = result.details if isinstance(result.details, dict) else {}
        exit_code, summary = details.get("exitCode"), details.get("summary")
        return Output(
            action=action,
            text=result.text,
            has_failed=result.is_error,
            number=self._number,
            exit_code=exit_code if isinstance(exit_code, int) else None,
            summary=summary if isinstance(summary, str) else "",
            is_truncated=bool(details.get("truncated") or details.get("truncation")),
            todo=self._todo,
            file_key=_read_file(details) or file_key(action.path),
        )

    def _call_of(self, result: ToolResultMessage) -> ToolCall:
        for at, call in enumerate(self._waiting):
            if call.id == result.tool_call_id:
                return self._waiting.pop(at)
        return ToolCall(id=result.tool_call_id, name=result.tool_name)

    def _plan(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            steps = call.arguments.get("todos")
            if isinstance(steps, list):
                self._todo = next((t for s in steps if (t := _step_in_progress(s))), "")


def _read_file(details: JsonObject) -> str:
    """The one file a tool of ours says it read; empty where it says nothing of the kind."""
    files = details.get("files")
    read = files.get("read") if isinstance(files, dict) else None
    path = read[0] if isinstance(read, list) and len(read) == 1 else None
    return path if isinstance(path, str) else ""


def _step_in_progress(step: JsonValue) -> str:
    if not isinstance(step, dict) or step.get("status") != "in_progress":
        return ""
    text = step.get("text") or step.get("content")
    return text if isinstance(text, str) else ""
