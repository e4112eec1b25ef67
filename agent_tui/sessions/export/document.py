"""A conversation as the pieces of a document: messages, actions and summaries, in order."""

import json
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    images_in,
)
from agent_tui.safe_text import printable_line
from agent_tui.secret_text import mask_secrets
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    Header,
    MessageEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.replay.changes import (
    UNDONE,
    EditReport,
    describe_edits,
    is_undo_mark,
    report_of,
)
from agent_tui.sessions.replay.notes import is_stop, jobs_in
from agent_tui.sessions.replay.pins import pin_line, pin_of
from agent_tui.sessions.replay.scope_entries import (
    ScopeEnter,
    ScopeExit,
    ScopeMark,
    enter_line,
    exit_line,
    mark_of,
)

BlockKind: TypeAlias = Literal["user", "assistant", "thinking", "call", "result", "summary"]

_TITLE_CHARS = 80
_SUBJECT_CHARS = 60
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_IMAGE_ADDRESS = re.compile(rf"data:image/[a-z]+;base64,{_BASE64.pattern}")


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a document. `is_code`: preformatted, and folded in a page."""

    kind: BlockKind
    title: str
    text: str
    is_code: bool = False
    images: tuple[ImageContent, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """The present branch of a session, ready for export."""

    title: str
    facts: tuple[str, ...]
    blocks: tuple[Block, ...]


def document_of(
    header: Header,
    path: Sequence[Entry],
    branches: Sequence[int] = (),
    secrets: Sequence[str] = (),
) -> Document:
    """The conversation on `path`.

    Args:
        header: The session's header.
        path: Entries from the root to the leaf.
        branches: The number of messages of each branch beside `path`.
        secrets: Values to mask, as is everything that looks like one.
    """
    blocks = (
        replace(
            block, title=mask_secrets(block.title, secrets), text=mask_secrets(block.text, secrets)
        )
        for entry in path
        for block in blocks_of(entry)
    )
    title = mask_secrets(_title_of(path), secrets)
    return Document(title, tuple(_facts_of(header, branches)), tuple(blocks))


def _title_of(path: Sequence[Entry]) -> str:
    """The session's name, else the user's first message, on one line."""
    named = (e.name for e in reversed(path) if isinstance(e, SessionInfoEntry) and e.name)
    messages = (e.message for e in path if isinstance(e, MessageEntry))
    asked = (m.text for m in messages if isinstance(m, UserMessage) and m.text.strip())
    return printable_line(next(named, "") or next(asked, "Session"), _TITLE_CHARS)


def _facts_of(header: Header, branches: Sequence[int] = ()) -> list[str]:
    """Facts about a session, one line each."""
    facts = [f"Session {header.id}", f"Started {header.timestamp}", f"Folder {header.cwd}"]
    if header.model_id:
        facts.append(f"Model {header.provider}/{header.model_id}")
    if header.parent_session:
        facts.append(f"Continues {header.parent_session}")
    if branches:
        others = "1 other branch" if len(branches) == 1 else f"{len(branches)} other branches"
        messages = "1 message" if sum(branches) == 1 else f"{sum(branches):,} messages"
        facts.append(f"Not shown: {others} with {messages}")
    return [printable_line(fact, len(fact)) for fact in facts]


def other_branches(entries: Sequence[Entry], path: Sequence[Entry]) -> tuple[int, ...]:
    """The number of messages of each branch that leaves `path` or an earlier branch."""
    seen = {entry.id for entry in path}
    parents = {entry.parent_id for entry in entries}
    by_id = {entry.id: entry for entry in entries}
    counts: list[int] = []
    for leaf in entries:
        if leaf.id in parents or leaf.id in seen:
            continue
        count, present = 0, leaf
        while present.id not in seen:
            seen.add(present.id)
            count += isinstance(present, MessageEntry)
            present = by_id.get(present.parent_id or "", present)
        if count:
            counts.append(count)
    return tuple(counts)


def blocks_of(entry: Entry) -> Iterator[Block]:
    """The document pieces of `entry`; none for entries that only store state."""
    match entry:
        case MessageEntry():
            yield from _message_blocks(entry.message)
        case CompactionEntry():
            yield Block("summary", _compaction_line(entry), entry.summary)
        case BranchSummaryEntry():
            yield Block("summary", "Summary of another branch", entry.summary)
        case CustomMessageEntry() if mark := mark_of(entry):
            yield from _scope_blocks(mark)
        case CustomMessageEntry() if note := _note_of(entry):
            yield Block("summary", "Note", note)
        case CustomMessageEntry() if entry.display:
            images = images_in(entry.content)
            yield Block("user", entry.custom_type or "Note", entry.text, images=images)
        case CustomEntry() if report := report_of(entry):
            done = describe_edits(report.messages, report.freed)
            yield Block("summary", _compaction_line(report), done)
        case CustomEntry() if is_undo_mark(entry):
            yield Block("summary", "Note", UNDONE)
        case _:
            return


def _note_of(entry: CustomMessageEntry) -> str:
    if pin := pin_of(entry):
        return pin_line(pin)
    return entry.text if jobs_in(entry) or is_stop(entry) else ""


def _scope_blocks(mark: ScopeMark) -> Iterator[Block]:
    match mark:
        case ScopeEnter(label=label):
            yield Block("summary", enter_line(label), "")
        case ScopeExit(label=label, summary=summary):
            yield Block("summary", exit_line(label), summary)
        case _:
            pass


def _compaction_line(change: CompactionEntry | EditReport) -> str:
    sizes = f"{change.tokens_before:,} -> {change.tokens_after:,} tokens"
    return f"Context compacted ({sizes})"


def _message_blocks(message: Message) -> Iterator[Block]:
    match message:
        case UserMessage():
            yield Block("user", "User", message.text, images=message.images)
        case AssistantMessage():
            for part in message.content:
                match part:
                    case TextContent():
                        yield Block("assistant", "Assistant", part.text)
                    case ThinkingContent():
                        yield Block("thinking", "Thinking", part.thinking, is_code=True)
                    case ToolCall():
                        arguments = json.dumps(part.arguments, ensure_ascii=False, indent=2)
                        yield Block("call", _call_title(part), arguments, is_code=True)
                    case _:
                        assert_never(part)
            if message.error_message:
                yield Block("assistant", "Assistant: error", message.error_message)
        case ToolResultMessage():
            outcome = "Tool error" if message.is_error else "Tool result"
            title = f"{outcome}: {message.tool_name}"
            images = images_in(message.content)
            yield Block("result", title, message.text, is_code=True, images=images)
        case BashExecutionMessage():
            yield Block("call", "User command", message.text, is_code=True)
        case _:
            assert_never(message)


def _call_title(call: ToolCall) -> str:
    """The tool and its subject, so that a folded call shows what it did."""
    return f"Tool call: {call.name} {printable_line(call.subject, _SUBJECT_CHARS)}".strip()


def image_address(image: ImageContent, types: Container[str]) -> str | None:
    """`image` as a ``data:`` URL; None if its type is not in `types` or it is not Base64."""
    data = "".join(image.data.split())
    if image.mime_type in types and _BASE64.fullmatch(data):
        return f"data:{image.mime_type};base64,{data}"
    return None


def is_image_address(text: str) -> bool:
    """Whether `text` is exactly one URL as `image_address` makes it."""
    return _IMAGE_ADDRESS.fullmatch(text) is not None
