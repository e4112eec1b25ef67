"""``agent-tui sessions show``: shows what a session file holds, and its problems."""

import json
import sys
from typing import cast

from agent_tui.cli.output import write_json
from agent_tui.commands.event_lines import turn_facts_line
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    JsonObject,
    TextContent,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.safe_text import printable_line, strip_control_characters
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
)
from agent_tui.sessions.format.codec import encode_entry, encode_header
from agent_tui.sessions.lineage.entry_text import entry_text
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import UNDONE, describe_edits, is_undo_mark, report_of
from agent_tui.sessions.replay.notes import turn_facts_in
from agent_tui.text import markdown_words

_LINE_CHARS = 100
_READ_CHARS = 400
"""Characters read of a text, as Markdown syntax is not among the characters shown."""


def print_session(log: SessionLog, *, is_json: bool) -> None:
    """Print the content of `log`'s file, and its problems on standard error."""
    if is_json:
        write_json(
            {
                "path": str(log.path),
                "header": _line_json(encode_header(log.header)),
                "entries": [_line_json(encode_entry(entry)) for entry in log.entries],
                "warnings": list(log.warnings),
            }
        )
        return
    header = log.header
    print(f"{printable_line(log.name) or 'Session'} {printable_line(header.id)}")
    print(f"  file    {strip_control_characters(str(log.path))}")
    print(f"  folder  {strip_control_characters(header.cwd)}")
    print(f"  started {strip_control_characters(header.timestamp)}")
    if header.parent_session:
        print(f"  parent  {strip_control_characters(header.parent_session)}")
    print()
    for entry in log.entries:
        kind = f"{printable_line(entry.id)}  {printable_line(entry.type):<12}"
        print(f"{kind}  {printable_line(_describe(entry), _LINE_CHARS)}")
    for warning in log.warnings:
        print(f"warning: {strip_control_characters(warning)}", file=sys.stderr)


def _describe(entry: Entry) -> str:
    match entry:
        case MessageEntry():
            return _describe_message(entry)
        case CompactionEntry(tokens_before=before, tokens_after=after, summary=summary):
            return f"{before:,} -> {after:,} tokens: {markdown_words(summary[:_READ_CHARS])}"
        case ModelChangeEntry():
            return f"{entry.provider}/{entry.model_id}"
        case ThinkingLevelChangeEntry():
            return entry.thinking_level
        case SessionInfoEntry():
            return entry.name or ""
        case BranchSummaryEntry() | CustomMessageEntry():
            return markdown_words(entry_text(entry, _READ_CHARS))
        case ContextEditEntry():
            return f"tier {entry.tier}: {entry.target_id} as {_describe_replacement(entry)}"
        case CustomEntry():
            return _describe_custom(entry)
        case _:
            return ""


def _describe_message(entry: MessageEntry) -> str:
    text = entry_text(entry, _READ_CHARS)
    match entry.message:
        case UserMessage():
            return f"user: {text}"
        case AssistantMessage():
            return f"assistant: {markdown_words(text)}"
        case BashExecutionMessage():
            return f"! {text}"
        case ToolResultMessage(is_error=is_error):
            return f"failed: {text}" if is_error else text


def _describe_custom(entry: CustomEntry) -> str:
    if report := report_of(entry):
        done = describe_edits(report.messages, report.freed)
        return f"{report.tokens_before:,} -> {report.tokens_after:,} tokens: {done}"
    if facts := turn_facts_in(entry):
        return turn_facts_line(facts)
    return UNDONE if is_undo_mark(entry) else entry.custom_type


def _describe_replacement(edit: ContextEditEntry) -> str:
    match edit.replacement:
        case None:
            return "nothing"
        case str(text):
            return text
        case parts:
            texts = (part.text for part in parts if isinstance(part, TextContent))
            return next(texts, f"{len(parts)} shortened parts")


def _line_json(line: bytes) -> JsonObject:
    return cast(JsonObject, json.loads(line))
