"""Showing a context in short, and checking that it can be sent."""

from collections.abc import Sequence

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.context import Context
from agent_tui.sessions.settle import ContextMessage


def shown(context: Context) -> list[str]:
    """One short text a message: role and text, or calls."""
    return [line(item.message) for item in context.messages]


def line(message: Message) -> str:
    match message:
        case UserMessage():
            return f"user: {message.text}"
        case AssistantMessage():
            calls = "".join(f" <{call.id}>" for call in message.tool_calls)
            return f"assistant: {message.text}{calls}"
        case ToolResultMessage():
            return f"result {message.tool_call_id}: {message.text}"
        case BashExecutionMessage():
            return f"bash: {message.command}"


def assert_settled(messages: Sequence[ContextMessage]) -> None:
    """What every provider demands of a conversation."""
    open_calls: list[str] = []
    seen: set[str] = set()
    if messages:
        assert isinstance(messages[0].message, UserMessage | BashExecutionMessage)
    for item in messages:
        message = item.message
        message.model_dump_json()
        if isinstance(message, ToolResultMessage):
            assert open_calls
            assert open_calls.pop(0) == message.tool_call_id
            continue
        assert not open_calls
        if isinstance(message, AssistantMessage):
            open_calls = [call.id for call in message.tool_calls]
            assert message.text.strip() or open_calls
            assert not seen.intersection(open_calls)
            assert len(set(open_calls)) == len(open_calls)
            assert all(open_calls)
            seen.update(open_calls)
    assert not open_calls
