"""Showing a context in short, and checking that it can be sent."""

from collections.abc import Sequence

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.providers.wires.anthropic import anthropic_payload
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.sessions.context import Context, build_context
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.replay.normalise import ContextMessage
from tests.support.wire_rules import anthropic_problems, openai_problems


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


def assert_normalised(messages: Sequence[ContextMessage]) -> None:
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


def assert_sendable(path: Sequence[Entry]) -> None:
    """That every service takes the context of `path`, and with it all thinking that is signed."""
    items = build_context(path).messages
    assert_normalised(items)
    messages = [item.message for item in items]
    for model in ("", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"):
        assert openai_problems(openai_messages("", messages, model=model)) == []
    assert anthropic_problems(anthropic_payload("", messages)) == []
    assert_thinking_as_signed(path, items)


def assert_thinking_as_signed(path: Sequence[Entry], items: Sequence[ContextMessage]) -> None:
    """Signed thinking stands in the reply it was signed in, before what it led to, or nowhere."""
    written = {entry.id: entry.message for entry in path if isinstance(entry, MessageEntry)}
    for item in items:
        reply = item.message
        if isinstance(reply, AssistantMessage) and any(
            isinstance(part, ThinkingContent) and part.signature for part in reply.content
        ):
            original = written[item.entry_id]
            assert isinstance(original, AssistantMessage)
            assert _without_ids(reply) == _without_ids(original)


def context_bytes(path: Sequence[Entry]) -> list[str]:
    """The context of `path`, to be compared byte for byte."""
    return [item.entry_id + item.message.model_dump_json() for item in build_context(path).messages]


def _without_ids(reply: AssistantMessage) -> list[object]:
    """What a reply holds; ids of calls are made anew where they were used twice."""
    return [
        part.model_copy(update={"id": ""}) if isinstance(part, ToolCall) else part
        for part in reply.content
    ]
