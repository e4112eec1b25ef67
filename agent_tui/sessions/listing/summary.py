"""What a list of sessions shows of one file, found without reading its lines as JSON."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from agent_tui.attachments import without_attachments
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import (
    CompactionEntry,
    Entry,
    Header,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.file.chunks import Chunk, read_chunks
from agent_tui.sessions.format.codec import UnreadableRecordError, decode_record
from agent_tui.sessions.format.parse import id_in_name

_USER_ROLE = re.compile(rb'"role"\s*:\s*"user"')
_MESSAGE_MARKS = (b'"type":"message"', b'"type": "message"')
_MOST_TRIES = 8
"""Lines that only look like what is searched for, before the search is given up."""

ValueT = TypeVar("ValueT", str, int)


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One session in a list.

    `message_count` counts all messages of the file, tool results and branches too.
    `first_prompt` is one line of at most 200 characters: the first of the conversation, also
    if a session before ``/compact`` has it. `model` is ``provider/model``, the
    newest one set. `launch_cwd` is None unless the session works in another folder than the
    one the program was started in. `context_tokens` is what the context held at last: as the
    provider counted it after the newest reply, or as the newest compaction left it; 0: unknown.
    `origin` is that of the header; empty for a session that a person made.
    """

    id: str
    path: Path
    cwd: Path
    name: str
    first_prompt: str
    message_count: int
    modified: datetime
    model: str
    parent_session: str | None
    size_bytes: int
    launch_cwd: Path | None
    context_tokens: int
    origin: str = ""


def read_summary(path: Path) -> SessionSummary | None:
    """Summarise the session file at `path`; None if it cannot be read or is no session.

    The whole file is read, a few megabytes at a time: a name may stand anywhere in it.
    """
    try:
        chunks = read_chunks(path)
        first = next(chunks, Chunk(b"", 0))
        header = _header(first.data)
        found = _blank(path, header or Header(id=id_in_name(path), cwd=""))
        found = _with_lines(found, first)
        for chunk in chunks:
            found = _with_lines(found, chunk)
        return _dated(found) if header is not None or found.first_prompt else None
    except OSError:
        return None


def extend_summary(known: SessionSummary) -> SessionSummary | None:
    """`known` with what was appended to its file since; None if it cannot be read.

    The file must still begin with the `size_bytes` bytes that were read, whole lines.
    """
    try:
        found = known
        for chunk in read_chunks(known.path, known.size_bytes):
            found = _with_lines(found, chunk)
        return _dated(found)
    except OSError:
        return None


def _blank(path: Path, header: Header) -> SessionSummary:
    return SessionSummary(
        id=header.id,
        path=path,
        cwd=Path(header.cwd),
        name="",
        first_prompt=printable_line(header.first_prompt or ""),
        message_count=0,
        modified=datetime.fromtimestamp(0, UTC),
        model=_model(header.provider, header.model_id),
        parent_session=header.parent_session,
        size_bytes=0,
        launch_cwd=Path(header.launch_cwd) if header.launch_cwd else None,
        context_tokens=0,
        origin=header.origin or "",
    )


def _with_lines(before: SessionSummary, chunk: Chunk) -> SessionSummary:
    """`before` and what the lines of `chunk`, which follow it, add."""
    data = chunk.data
    name = _newest(data, (b'"session_info"',), _name)
    model = _newest(data, (b'"model_change"',), _changed_model)
    tokens = _newest(data, (b'"usage"', b'"tokensAfter"'), _tokens)
    return replace(
        before,
        name=before.name if name is None else name,
        first_prompt=before.first_prompt or _first_prompt(data),
        message_count=before.message_count + sum(map(data.count, _MESSAGE_MARKS)),
        model=before.model if model is None else model,
        size_bytes=before.size_bytes + chunk.size_bytes,
        context_tokens=before.context_tokens if tokens is None else tokens,
    )


def _dated(found: SessionSummary) -> SessionSummary:
    modified = datetime.fromtimestamp(found.path.stat().st_mtime, UTC)
    return replace(found, modified=modified)


def _header(data: bytes) -> Header | None:
    value = _read(_line_around(data, 0))
    return value if isinstance(value, Header) else None


def _first_prompt(data: bytes) -> str:
    for _, found in zip(range(_MOST_TRIES), _USER_ROLE.finditer(data), strict=False):
        entry = _read(_line_around(data, found.start()))
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            return prompt_line(entry.message)
    return ""


def prompt_line(message: UserMessage) -> str:
    """What the user typed, on a line."""
    return printable_line(without_attachments(message.text))


def _newest(
    data: bytes, marks: Sequence[bytes], read: Callable[[Entry], ValueT | None]
) -> ValueT | None:
    """What `read` makes of the newest line with one of `marks` that it can use."""
    end = len(data)
    for _ in range(_MOST_TRIES):
        newest = -1
        for mark in marks:  # the next one need only be newer: each look costs its bytes
            newest = max(newest, data.rfind(mark, max(newest, 0), end))
        if newest < 0:
            return None
        end = newest
        entry = _read(_line_around(data, end))
        value = None if entry is None or isinstance(entry, Header) else read(entry)
        if value is not None:
            return value
    return None


def _name(entry: Entry) -> str | None:
    return entry.name or "" if isinstance(entry, SessionInfoEntry) else None


def _changed_model(entry: Entry) -> str | None:
    return _model(entry.provider, entry.model_id) if isinstance(entry, ModelChangeEntry) else None


def _tokens(entry: Entry) -> int | None:
    match entry:
        case MessageEntry(message=AssistantMessage(usage=usage)) if not usage.is_estimate:
            return usage.context_tokens or None
        case CompactionEntry(tokens_after=tokens):
            return tokens or None
        case _:
            return None


def _model(provider: str, model_id: str) -> str:
    return f"{provider}/{model_id}" if provider else model_id


def _line_around(data: bytes, position: int) -> bytes:
    start = data.rfind(b"\n", 0, position) + 1
    end = data.find(b"\n", position)
    return data[start : end if end >= 0 else len(data)]


def _read(line: bytes) -> Header | Entry | None:
    try:
        return decode_record(line).value
    except UnreadableRecordError:
        return None
