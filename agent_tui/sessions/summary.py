"""What a list of sessions shows of one file, found without reading all its lines."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from agent_tui.messages import UserMessage
from agent_tui.sessions.entries import (
    Entry,
    Header,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.lines import UnreadableLineError, read_line
from agent_tui.text import strip_control_characters

_USER_ROLE = re.compile(rb'"role"\s*:\s*"user"')
_PROMPT_CHARS = 200
_MOST_TRIES = 8
"""Lines that only look like what is searched for, before the search is given up."""

EntryT = TypeVar("EntryT", bound=Entry)


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One session in a list.

    `message_count` counts all messages of the file, tool results and branches too.
    `first_prompt` is one line of at most 200 characters. `model` is ``provider/model``, the
    newest one set. `launch_cwd` is None unless the session works in another folder than the
    one the program was started in.
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


def read_summary(path: Path) -> SessionSummary | None:
    """Summarise the session file at `path`; None if it cannot be read or is no session."""
    try:
        data = path.read_bytes()
        status = path.stat()
    except OSError:
        return None
    header = _header(data)
    first_prompt = _first_prompt(data)
    if header is None and not first_prompt:
        return None
    header = header or Header(id=path.stem.rpartition("_")[2], timestamp="", cwd="")
    name = _last(data, b'"session_info"', SessionInfoEntry)
    change = _last(data, b'"model_change"', ModelChangeEntry)
    provider = change.provider if change else header.provider
    model_id = change.model_id if change else header.model_id
    return SessionSummary(
        id=header.id,
        path=path,
        cwd=Path(header.cwd),
        name=(name.name or "") if name else "",
        first_prompt=first_prompt,
        message_count=data.count(b'"type":"message"') + data.count(b'"type": "message"'),
        modified=datetime.fromtimestamp(status.st_mtime, UTC),
        model=f"{provider}/{model_id}" if provider else model_id,
        parent_session=header.parent_session,
        size_bytes=status.st_size,
        launch_cwd=Path(header.launch_cwd) if header.launch_cwd else None,
    )


def one_line(text: str, most_chars: int = _PROMPT_CHARS) -> str:
    """`text` on one line, without control characters, cut to `most_chars`."""
    start = strip_control_characters(text[: most_chars * 4])
    joined = " ".join(start.split())
    return joined if len(joined) <= most_chars else joined[: most_chars - 1] + "…"


def _header(data: bytes) -> Header | None:
    value = _read(_line_around(data, 0))
    return value if isinstance(value, Header) else None


def _first_prompt(data: bytes) -> str:
    for _, found in zip(range(_MOST_TRIES), _USER_ROLE.finditer(data), strict=False):
        entry = _read(_line_around(data, found.start()))
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            return one_line(entry.message.text)
    return ""


def _last(data: bytes, mark: bytes, kind: type[EntryT]) -> EntryT | None:
    end = len(data)
    for _ in range(_MOST_TRIES):
        end = data.rfind(mark, 0, end)
        if end < 0:
            return None
        entry = _read(_line_around(data, end))
        if isinstance(entry, kind):
            return entry
    return None


def _line_around(data: bytes, position: int) -> bytes:
    start = data.rfind(b"\n", 0, position) + 1
    end = data.find(b"\n", position)
    return data[start : end if end >= 0 else len(data)]


def _read(line: bytes) -> Header | Entry | None:
    try:
        return read_line(line).value
    except UnreadableLineError:
        return None
