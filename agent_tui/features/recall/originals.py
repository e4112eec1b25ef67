"""The original messages of a conversation: text, description and lines."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias, TypeGuard, assert_never

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    images_in,
)
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)

ROW_CHARS = 500
"""A longer line counts as several, so that every part of it can be requested."""

EARLIER_WORK = "earlier_work"
"""The custom type of a hint of earlier work."""

_SUBJECT_CHARS = 80
_MOST_CALLS = 3
_TELLING = frozenset({"command", "cmd", "path", "file_path", "pattern", "query", "url", "id"})
"""Arguments that show what a call is about, for any program's tools."""


RecallableEntry: TypeAlias = (
    MessageEntry | CompactionEntry | BranchSummaryEntry | CustomMessageEntry
)
"""The entries that contain text; see `is_recallable`."""


def is_recallable(entry: Entry) -> TypeGuard[RecallableEntry]:
    """Whether `entry` has text that the model may receive.

    What the user ran with ``!!`` was meant to be hidden from the model, and stays hidden. A hint of
    earlier work only repeats how another session began.
    """
    if isinstance(entry, MessageEntry):
        message = entry.message
        return not (isinstance(message, BashExecutionMessage) and message.exclude_from_context)
    if isinstance(entry, CustomMessageEntry):
        return entry.custom_type != EARLIER_WORK
    return isinstance(entry, CompactionEntry | BranchSummaryEntry)


def entry_text(entry: RecallableEntry) -> str:
    """The text of `entry`, thinking left out."""
    match entry:
        case MessageEntry(message=message):
            return _message_text(message)
        case CompactionEntry() | BranchSummaryEntry():
            return entry.summary
        case CustomMessageEntry():
            return _join_content(entry.content)
        case _:
            assert_never(entry)


def reply_text(reply: AssistantMessage, blanked: frozenset[str] = frozenset()) -> str:
    """Text and calls of a reply in order, every argument in full.

    Args:
        reply: The reply; its thinking is left out.
        blanked: Tools whose calls become the same number of empty lines.
    """
    parts: list[str] = []
    for part in reply.content:
        match part:
            case TextContent():
                parts.append(part.text)
            case ToolCall():
                given = [_argument_lines(key, value) for key, value in part.arguments.items()]
                lines = "\n".join([f"[call {part.name}]", *chain.from_iterable(given)])
                parts.append("\n" * lines.count("\n") if part.name in blanked else lines)
            case ThinkingContent():
                pass
            case _:
                assert_never(part)
    return "\n".join(parts)


def describe_entry(entry: RecallableEntry, call: ToolCall | None) -> str:
    """What `entry` was, in a few words.

    Args:
        entry: The entry.
        call: The call that it answers, if it is a result and the call is known.
    """
    match entry:
        case MessageEntry(message=message):
            return _describe_message(message, call)
        case CompactionEntry():
            return "compaction summary"
        case BranchSummaryEntry():
            return "summary of another branch"
        case CustomMessageEntry():
            return f"note ({entry.custom_type})" if entry.custom_type else "note"
        case _:
            assert_never(entry)


def call_subject(call: ToolCall) -> str:
    """Tool and target of a call: ``read src/a.py``, ``bash pytest -q``."""
    given = [(key, value) for key, value in call.arguments.items() if isinstance(value, str)]
    telling = [value for key, value in given if key in _TELLING] or [v for _, v in given[:1]]
    return _one_line(" ".join([call.name, *telling]))


def call_answered_by(entry: RecallableEntry, older: Iterable[Entry]) -> ToolCall | None:
    """The call that `entry` is the result of: the newest with its id among `older`.

    Args:
        entry: Any entry; None is returned unless it is a result.
        older: The entries before it, newest first.
    """
    if not (isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage)):
        return None
    for before in older:
        if isinstance(before, MessageEntry) and isinstance(before.message, AssistantMessage):
            for call in before.message.tool_calls:
                if call.id == entry.message.tool_call_id:
                    return call
    return None


def entry_images(entry: RecallableEntry) -> tuple[ImageContent, ...]:
    """The images of a message."""
    match entry:
        case MessageEntry(message=UserMessage() | ToolResultMessage() as message):
            return images_in(message.content)
        case CustomMessageEntry():
            return images_in(entry.content)
        case _:
            return ()


def whole_output_path(entry: RecallableEntry) -> str | None:
    """The file with the whole output of a result that the model received in part."""
    match entry:
        case MessageEntry(message=ToolResultMessage() as result):
            return result.tool_details.full_output_path
        case MessageEntry(message=BashExecutionMessage() as run):
            return run.full_output_path
        case _:
            return None


def entry_minute(entry: RecallableEntry) -> str:
    """Minute of an entry, in UTC: ``2026-03-02 09:00``."""
    return entry.timestamp[:16].replace("T", " ")


def rows_of(text: str) -> list[str]:
    """`text` in lines with their ends, lines over `ROW_CHARS` split; joined they are `text`."""
    rows: list[str] = []
    for line in text.split("\n"):
        rows += [line[at : at + ROW_CHARS] for at in range(0, len(line), ROW_CHARS)] or [""]
        rows[-1] += "\n"
    rows[-1] = rows[-1].removesuffix("\n")
    return rows


def _describe_message(message: Message, call: ToolCall | None) -> str:
    match message:
        case UserMessage():
            return "user message"
        case AssistantMessage(tool_calls=()):
            return "reply"
        case AssistantMessage(tool_calls=calls):
            return f"reply calling {', '.join(map(call_subject, calls[:_MOST_CALLS]))}"
        case ToolResultMessage():
            subject = call_subject(call) if call is not None else message.tool_name
            return f"{'error' if message.is_error else 'result'} of {subject}"
        case BashExecutionMessage():
            return f"user's ! {_one_line(message.command)}"
        case _:
            assert_never(message)


def _message_text(message: Message) -> str:
    match message:
        case UserMessage() | ToolResultMessage():
            return _join_content(message.content)
        case AssistantMessage():
            return reply_text(message)
        case BashExecutionMessage():
            return message.text
        case _:
            assert_never(message)


def _join_content(content: str | Sequence[UserContent]) -> str:
    if isinstance(content, str):
        return content
    if len(content) == 1 and isinstance(content[0], TextContent):
        return content[0].text
    return "\n".join(
        part.text if isinstance(part, TextContent) else f"[image, {part.mime_type}]"
        for part in content
    )


def _argument_lines(name: str, value: JsonValue) -> Iterator[str]:
    """`value` with its texts unchanged, each after its path: ``edits[0].old: x = 1``."""
    match value:
        case str():
            yield f"{name}:\n{value}" if "\n" in value else f"{name}: {value}"
        case dict() if value:
            for key, inner in value.items():
                yield from _argument_lines(f"{name}.{key}", inner)
        case list() if value:
            for index, inner in enumerate(value):
                yield from _argument_lines(f"{name}[{index}]", inner)
        case _:
            yield f"{name}: {json.dumps(value)}"


def _one_line(text: str) -> str:
    """`text` on one line, cut in the middle: commands differ at the start, paths at the end."""
    joined = " ".join(text.split())
    if len(joined) <= _SUBJECT_CHARS:
        return joined
    tail = _SUBJECT_CHARS // 2
    return f"{joined[: _SUBJECT_CHARS - tail - 1]}…{joined[-tail:]}"
