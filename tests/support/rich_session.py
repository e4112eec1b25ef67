"""A session with an entry of every kind, two branches and all that changes the context."""

from itertools import count
from pathlib import Path
from typing import TypeVar

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UnknownEntry,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import undo_mark
from tests.support.session_values import WHEN, entry, header, reply, result, user

EntryT = TypeVar("EntryT", bound=Entry)

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def rich_log(path: Path | None = None) -> SessionLog:
    """The session, in memory or at `path`; a compaction and an edit are in force at its leaf."""
    log = SessionLog.create(path, header(provider="p", modelId="m"))
    serial = count(1)

    def add(item: EntryT) -> EntryT:
        return log.append(item.model_copy(update={"id": f"{next(serial):08x}"}))

    add(entry(user("look at both files \u2028 \u00fc \U0001f600")))
    add(ModelChangeEntry(provider="p", model_id="m2", timestamp=WHEN))
    add(ThinkingLevelChangeEntry(thinking_level="high", timestamp=WHEN))
    add(entry(_thoughtful_reply()))
    add(entry(result("c1", "one\u2028line")))
    picture = ImageContent(data=PIXEL, mime_type="image/png")
    seen = ToolResultMessage(
        tool_call_id="c2", tool_name="read", content=(picture,), details={"n": [1.5, None]}
    )
    add(entry(seen.model_copy(update={"timestamp": 3})))
    fork = add(entry(reply("Both are fine.")))
    add(CustomEntry(custom_type="scope", data={"a": [1, {"b": None}]}, timestamp=WHEN))
    add(entry(user("this way")))
    add(entry(reply("Gone astray.")))
    log.branch_to(fork.id)
    add(BranchSummaryEntry(from_id=fork.id, summary="It went astray.", timestamp=WHEN))
    shown = (TextContent(text="what is this?"), picture)
    kept = add(entry(UserMessage(content=shown, timestamp=4)))
    add(entry(reply("Running.", ("c3", "bash"))))
    output = add(entry(result("c3", "a long output", "bash")))
    add(entry(BashExecutionMessage(command="ls", output="a\nb", exit_code=0, timestamp=5)))
    add(LabelEntry(target_id=kept.id, label="here", timestamp=WHEN))
    add(CustomMessageEntry(custom_type="note", content="a note", timestamp=WHEN))
    add(_compaction("What was done.", kept))
    edit = add(ContextEditEntry(target_id=output.id, replacement="short", timestamp=WHEN))
    undone = add(ContextEditEntry(target_id=kept.id, replacement="gone", timestamp=WHEN))
    add(undo_mark((undone.id,)).model_copy(update={"timestamp": WHEN}))
    assert edit.id != undone.id
    add(SessionInfoEntry(name="My work", timestamp=WHEN))
    add(UnknownEntry.model_validate({"type": "sparkle", "glow": [1, None], "timestamp": WHEN}))
    add(entry(user("go on")))
    add(entry(reply("Going on.")))
    return log


def _thoughtful_reply() -> AssistantMessage:
    calls = (
        ToolCall(id="c1", name="read", arguments={"path": "a.py"}),
        ToolCall(id="c2", name="read", arguments={"path": "b.png", "deep": [[["x"]]]}),
    )
    thinking = ThinkingContent(thinking="Two files.", signature="c2lnbmVk")
    usage = Usage(input=10, output=5, total_tokens=15)
    return AssistantMessage(
        content=(thinking, TextContent(text="Reading."), *calls),
        provider="p",
        model="m2",
        usage=usage,
        stop_reason="toolUse",
        timestamp=2,
    )


def _compaction(summary: str, first_kept: Entry) -> CompactionEntry:
    return CompactionEntry(
        summary=summary, first_kept_entry_id=first_kept.id, tokens_before=900, timestamp=WHEN
    )
