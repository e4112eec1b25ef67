"""Summaries that large models wrote in recorded sessions, with what they stand for."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from agent_tui.compaction.summary.validate import SummarySource, summary_source
from agent_tui.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import CompactionEntry, Entry, MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.tokens import TokenCounter
from tests.support.trajectories import trajectory

PI = "pi/before-compaction.jsonl"
CLAUDE = (
    "claude-code/spotter-4d5611e5.jsonl",
    "claude-code/spotter-8463c716.jsonl",
    "claude-code/spotter-ae4a77f8.jsonl",
)


@dataclass(frozen=True)
class RealSummary:
    text: str
    source: SummarySource


def real_summaries(name: str, counter: TokenCounter) -> list[RealSummary]:
    """The summaries in one recorded session; skips the test where it is missing."""
    return list(_pi(counter) if name == PI else _claude(name, counter))


def _pi(counter: TokenCounter) -> Iterator[RealSummary]:
    with SessionLog.open(trajectory(PI), read_only=True) as log:
        path, cwd = log.path_entries(), log.header.cwd
    previous = ""
    for at, entry in enumerate(path):
        if isinstance(entry, CompactionEntry):
            yield RealSummary(entry.summary, _source(path[:at], cwd, previous, counter))
            previous = entry.summary


def _claude(name: str, counter: TokenCounter) -> Iterator[RealSummary]:
    entries: list[Entry] = []
    cwd = "/"
    with trajectory(name).open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            cwd = record.get("cwd") or cwd
            if record.get("isCompactSummary"):
                text = record["message"]["content"].partition("\n\n")[2]
                yield RealSummary(text, _source(entries, cwd, "", counter))
            elif record.get("type") in ("user", "assistant") and "message" in record:
                content = record["message"]["content"]
                for message in _messages(record["type"], content):
                    entries.append(MessageEntry(id=f"{len(entries):08x}", message=message))


def _messages(role: str, content: str | list[dict]) -> Iterator[Message]:
    said: list[dict] = [{"type": "text", "text": content}]
    for part in said if isinstance(content, str) else content:
        if part["type"] == "text" and role == "user":
            yield UserMessage(content=part["text"])
        elif part["type"] == "text":
            yield AssistantMessage(content=(TextContent(text=part["text"]),))
        elif part["type"] == "tool_use":
            call = ToolCall(id=part["id"], name=part["name"], arguments=part["input"])
            yield AssistantMessage(content=(call,))
        elif part["type"] == "tool_result":
            yield ToolResultMessage(
                tool_call_id=part["tool_use_id"],
                tool_name="tool",
                content=(TextContent(text=json.dumps(part["content"])),),
            )


def _source(
    entries: tuple[Entry, ...] | list[Entry], cwd: str, previous: str, counter: TokenCounter
) -> SummarySource:
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    return summary_source(messages, counter)
