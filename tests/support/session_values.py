"""Short ways to write down entries and session files in tests."""

from collections.abc import Sequence

from agent_tui.messages import (
    AssistantMessage,
    Message,
    StopReason,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import Entry, Header, MessageEntry
from agent_tui.sessions.format.codec import encode_entry, encode_header

WHEN = "2026-03-02T09:00:00.000Z"


def header(**fields: object) -> Header:
    return Header.model_validate(
        {"id": "0a1b2c3d-0000-4000-8000-000000000001", "timestamp": WHEN, "cwd": "/w", **fields}
    )


def user(text: str) -> UserMessage:
    return UserMessage(content=text, timestamp=1)


def reply(
    text: str = "", *calls: tuple[str, str], stop_reason: StopReason = "stop"
) -> AssistantMessage:
    """`calls`: pairs of call id and tool name."""
    parts = (TextContent(text=text),) if text else ()
    asked = tuple(ToolCall(id=call_id, name=name) for call_id, name in calls)
    return AssistantMessage(
        content=(*parts, *asked), provider="p", model="m", stop_reason=stop_reason, timestamp=2
    )


def result(call_id: str, text: str = "done", name: str = "read") -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call_id, tool_name=name, content=(TextContent(text=text),), timestamp=3
    )


def entry(message: Message) -> MessageEntry:
    return MessageEntry(message=message, timestamp=WHEN)


def chain(*entries: Entry) -> tuple[Entry, ...]:
    """`entries` as one path, with ids 00000001, 00000002 ... where they have none."""
    linked: list[Entry] = []
    for number, item in enumerate(entries, start=1):
        parent = linked[-1].id if linked else None
        own_id = item.id or f"{number:08x}"
        linked.append(item.model_copy(update={"id": own_id, "parent_id": parent}))
    return tuple(linked)


def conversation() -> tuple[Entry, ...]:
    """Seven entries: two turns, one of them with two calls."""
    return chain(
        entry(user("look at both files")),
        entry(reply("Reading.", ("c1", "read"), ("c2", "read"))),
        entry(result("c1", "one\u2028line")),
        entry(result("c2", "zwei: ü")),
        entry(reply("Both are fine.")),
        entry(user("thanks")),
        entry(reply("Welcome.")),
    )


def session_bytes(entries: Sequence[Entry], first: Header | None = None) -> bytes:
    lines = [encode_header(first or header()), *(encode_entry(item) for item in entries)]
    return b"".join(lines)
