"""The text of an entry, for lists of entries."""

from typing import TypeAlias, assert_never

from agent_tui.attachments import without_attachments
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    TextContent,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
)

_SUBJECT_CHARS = 200

ShownEntry: TypeAlias = MessageEntry | CompactionEntry | BranchSummaryEntry | CustomMessageEntry
"""Entries with a text to show; all others are hidden."""


def entry_text(entry: ShownEntry, most_chars: int) -> str:
    """The text of `entry`, cut to about `most_chars`; a reply without text names its calls."""
    match entry:
        case MessageEntry():
            return _message_text(entry.message, most_chars)[:most_chars]
        case CompactionEntry() | BranchSummaryEntry():
            return entry.summary[:most_chars]
        case CustomMessageEntry():
            return entry.text[:most_chars]
        case _:
            assert_never(entry)


def _message_text(message: Message, most_chars: int) -> str:
    match message:
        case UserMessage():
            text = without_attachments(message.text)[:most_chars]
            return text if text.strip() or not message.images else "(image)"
        case AssistantMessage():
            if (text := message.text[:most_chars]).strip():
                return text
            calls = [f"{call.name} {call.subject[:_SUBJECT_CHARS]}" for call in message.tool_calls]
            return ", ".join(calls) or message.error_message or ""
        case ToolResultMessage():
            first = next((p.text for p in message.content if isinstance(p, TextContent)), "")
            return f"{message.tool_name}: {first[:most_chars]}"
        case BashExecutionMessage():
            return message.command[:most_chars]
        case _:
            assert_never(message)
