"""A session as a document to keep or pass on: Markdown, one web page, or its own format."""

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
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
    UserContent,
    UserMessage,
)
from agent_tui.sessions.change_words import UNDONE, describe_edits
from agent_tui.sessions.changes import EditReport, is_undo_mark, report_of
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
from agent_tui.sessions.lines import encode_entry, encode_header
from agent_tui.sessions.log import SessionLog
from agent_tui.text import strip_control_characters

_Kind: TypeAlias = Literal["user", "assistant", "thinking", "call", "result", "summary"]


@dataclass(frozen=True, slots=True)
class _Block:
    """One piece of the document. `is_code`: shown as it stands, folded away in the page."""

    kind: _Kind
    title: str
    text: str
    is_code: bool = False


def exported(log: SessionLog, kind: str) -> str:
    """The present branch of `log` as ``html`` or Markdown; as ``jsonl`` the whole file."""
    match kind:
        case "html":
            return to_html(log.header, log.path_entries())
        case "jsonl":
            return to_jsonl(log)
        case _:
            return to_markdown(log.header, log.path_entries())


def to_markdown(header: Header, path: Sequence[Entry]) -> str:
    """The conversation on `path` as Markdown; control characters are left out."""
    lines = [f"# {_one_line(_title(path))}", "", *(f"- {fact}" for fact in _facts(header)), ""]
    for block in _blocks(path):
        text = strip_control_characters(block.text).strip("\n")
        lines += [f"## {_one_line(block.title)}", "", _fenced(text) if block.is_code else text, ""]
    return "\n".join(lines)


def to_html(header: Header, path: Sequence[Entry]) -> str:
    """The conversation on `path` as one web page that needs no network and runs no script."""
    facts = "".join(f"<li>{_escape(fact)}</li>" for fact in _facts(header))
    body = "\n".join(_block_html(block) for block in _blocks(path))
    page = files("agent_tui.sessions").joinpath("export.html").read_text(encoding="utf-8")
    # One pass, so that a conversation that mentions a placeholder is not filled in itself.
    values = {"title": _escape(_one_line(_title(path))), "facts": facts, "body": body}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], page)


def to_jsonl(log: SessionLog) -> str:
    """The whole session, every branch, in the session format."""
    lines = [encode_header(log.header), *(encode_entry(entry) for entry in log.entries)]
    return b"".join(lines).decode("utf-8")


def _title(path: Sequence[Entry]) -> str:
    for entry in reversed(path):
        if isinstance(entry, SessionInfoEntry) and entry.name:
            return entry.name
    return "Session"


def _facts(header: Header) -> list[str]:
    facts = [f"Session {header.id}", f"Begun {header.timestamp}", f"Folder {header.cwd}"]
    if header.model_id:
        facts.append(f"Model {header.provider}/{header.model_id}")
    if header.parent_session:
        facts.append(f"Continues {header.parent_session}")
    return [_one_line(fact) for fact in facts]


def _blocks(path: Sequence[Entry]) -> Iterator[_Block]:
    for entry in path:
        match entry:
            case MessageEntry():
                yield from _message_blocks(entry.message)
            case CompactionEntry():
                yield _Block("summary", _compacted(entry), entry.summary)
            case BranchSummaryEntry():
                yield _Block("summary", "A branch that was left", entry.summary)
            case CustomMessageEntry() if entry.display:
                yield _Block("user", entry.custom_type or "Note", entry.text)
            case CustomEntry() if report := report_of(entry):
                done = describe_edits(report.messages, report.freed)
                yield _Block("summary", _compacted(report), done)
            case CustomEntry() if is_undo_mark(entry):
                yield _Block("summary", "Note", UNDONE)
            case _:
                continue


def _compacted(change: CompactionEntry | EditReport) -> str:
    sizes = f"{change.tokens_before:,} -> {change.tokens_after:,} tokens"
    return f"Context compacted ({sizes})"


def _message_blocks(message: Message) -> Iterator[_Block]:
    match message:
        case UserMessage():
            content = message.content
            text = content if isinstance(content, str) else _content_text(content)
            yield _Block("user", "User", text)
        case AssistantMessage():
            for part in message.content:
                match part:
                    case TextContent():
                        yield _Block("assistant", "Assistant", part.text)
                    case ThinkingContent():
                        yield _Block("thinking", "Thinking", part.thinking, is_code=True)
                    case ToolCall():
                        arguments = json.dumps(part.arguments, ensure_ascii=False, indent=2)
                        yield _Block("call", f"Tool call: {part.name}", arguments, is_code=True)
                    case _:
                        assert_never(part)
            if message.error_message:
                yield _Block("assistant", "Assistant: error", message.error_message)
        case ToolResultMessage():
            outcome = "Tool error" if message.is_error else "Tool result"
            text = _content_text(message.content)
            yield _Block("result", f"{outcome}: {message.tool_name}", text, is_code=True)
        case BashExecutionMessage():
            text = f"$ {message.command}\n{message.output}"
            yield _Block("call", "Command of the user", text, is_code=True)
        case _:
            assert_never(message)


def _content_text(parts: Sequence[UserContent]) -> str:
    return "\n".join(
        f"[image, {part.mime_type}]" if isinstance(part, ImageContent) else part.text
        for part in parts
    )


def _fenced(text: str) -> str:
    """`text` in a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _block_html(block: _Block) -> str:
    title = _escape(_one_line(block.title))
    text = _escape(block.text.strip("\n"))
    if block.is_code:
        return (
            f'<details class="{block.kind}"><summary>{title}</summary><pre>{text}</pre></details>'
        )
    return f'<section class="{block.kind}"><h2>{title}</h2><div>{text}</div></section>'


def _escape(text: str) -> str:
    return html.escape(strip_control_characters(text))


def _one_line(text: str) -> str:
    return " ".join(strip_control_characters(text).split())
