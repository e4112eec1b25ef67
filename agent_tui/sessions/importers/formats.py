"""The import formats: pi's, which is ours too, and those that features bring."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, cast

from agent_tui.errors import SessionError
from agent_tui.feature import own_objects
from agent_tui.messages import JsonObject, Usage
from agent_tui.safe_paths import is_file, is_folder
from agent_tui.safe_text import printable_line
from agent_tui.sessions.format.parse import read_session
from agent_tui.sessions.importers.builder import (
    ForeignSession,
    ImportFormat,
    SessionEnd,
    SessionFinder,
    SessionHead,
    Warnings,
    sessions_folder,
)
from agent_tui.sessions.importers.fields import (
    as_count,
    as_object,
    joined_text,
    json_document,
    json_lines,
    text_at,
)
from agent_tui.sessions.importers.guard import guarded_import

_TYPES = frozenset({"session", "message", "model_change", "compaction"})


def _read_pi(path: Path) -> ForeignSession:
    """All entries of `path`, of every branch; the session continues at the last one.

    Raises:
        SessionError: The file cannot be read, or has no entry.
    """
    _, parsed = read_session(path)
    if not parsed.entries:
        raise SessionError(f"{path} contains no session entries.")
    return ForeignSession(parsed.header, parsed.entries, parsed.warnings)


def _is_pi(_number: int, record: JsonObject) -> bool:
    kind = text_at(record, "type")
    return kind in _TYPES and (kind != "message" or "message" in record)


def _files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    folder = sessions_folder(environ.get("PI_CODING_AGENT_DIR", ""), ".pi/agent", home)
    return folder.glob("sessions/*/*.jsonl")


def _read_head(head: SessionHead, number: int, line: JsonObject) -> None:
    match text_at(line, "type"):
        case "session":
            head.is_session = True
            head.cwd = text_at(line, "cwd")
        case "session_info":
            head.name = text_at(line, "name") or head.name
        case "message":
            message = as_object(line.get("message"))
            if message.get("role") == "user":
                head.prompt = head.prompt or joined_text(message.get("content"))
        case _:
            pass


def _read_end(end: SessionEnd, line: JsonObject) -> None:
    message = as_object(line.get("message"))
    if message.get("role") == "assistant":
        end.note_turn(is_done=message.get("stopReason") == "stop")
        used = as_count(as_object(message.get("usage")).get("totalTokens"))
        end.note_reply(joined_text(message.get("content")), Usage(total_tokens=used))
    elif message:
        end.note_turn(is_done=False)


PI: Final = ImportFormat(
    "pi",
    _read_pi,
    _is_pi,
    finder=SessionFinder("pi", _files, _read_head, read_end=_read_end),
)
"""Also reads our own sessions."""


_SEARCHED_LINES = 200
"""A session of Claude Code may begin with snapshots and hook messages."""

_ALL: Final = (PI, *cast("Iterator[ImportFormat]", own_objects("agent_tui.importers")))
"""Every format that the program imports."""

_OF_OURS = "Report it as a fault of agent-tui, if you can with the file."

FORMATS: Final = tuple(guarded_import(known, _OF_OURS) for known in _ALL)
"""The same, each guarded against faults in its reader."""


def read_foreign(
    path: Path, format_name: str | None = None, formats: Sequence[ImportFormat] = FORMATS
) -> ForeignSession:
    """The session in `path`. Nothing is written to it or beside it.

    Abandoned branches are included; the last entry is on the present one.

    Args:
        path: The file.
        format_name: Its format; None to detect it.
        formats: The formats to consider.

    Raises:
        SessionError: It cannot be read, is of no known format, or has no message.
    """
    if not is_session_place(path, formats):
        what = "is a folder" if is_folder(path) else "does not exist"
        raise SessionError(f"{path} {what}.", "Name a session file.")
    name = format_name or detect_format(path, formats)
    found = next((known for known in formats if known.name == name), None)
    if found is None:
        raise SessionError(f"Unknown format {name}.", _hint(formats))
    return found.read(path)


def is_session_place(path: Path, formats: Sequence[ImportFormat]) -> bool:
    """Whether `path` is a file, or the path of a session that one of `formats` has elsewhere."""
    return is_file(path) or any(known.is_place(path) for known in formats)


def detect_format(path: Path, formats: Sequence[ImportFormat] = FORMATS) -> str:
    """Detect the format of `path` from its contents; returns the format's name.

    Raises:
        SessionError: The file cannot be read, or is of no known format.
    """
    found = next((known for known in formats if known.is_place(path)), None)
    found = found or _format_of_records(path, formats) or _format_of_document(path, formats)
    if found is None and not path.stat().st_size:
        raise SessionError(f"{path} is empty.", "Name a session file.")
    described = (known.describe_unknown(path) for known in formats)
    if found is None and (what := next(filter(None, described), "")):
        raise SessionError(f"{path} is {what}.", _hint(formats))
    if found is None:
        raise SessionError(
            f"{path} is not a session that can be imported{_kind_of_lines(path)}.",
            f"{_hint(formats)} Name one with --from if the file is damaged.",
        )
    return found.name


def _kind_of_lines(path: Path) -> str:
    """Name the kind of the first line that has one, for a message; empty without any."""
    lines = islice(json_lines(path, Warnings()), _SEARCHED_LINES)
    kinds = (text_at(as_object(value), "type", "kind") for _, value in lines)
    kind = next(filter(None, kinds), "")
    return f": it has lines of an unknown kind, {printable_line(kind, 40)!r}" if kind else ""


def _hint(formats: Sequence[ImportFormat]) -> str:
    return f"Supported formats: {', '.join(known.name for known in formats)}."


def _format_of_records(path: Path, formats: Sequence[ImportFormat]) -> ImportFormat | None:
    """The format of the first line that identifies one."""
    for number, value in json_lines(path, Warnings()):
        record = as_object(value)
        for known in formats:
            if known.is_record(number, record):
                return known
        if number >= _SEARCHED_LINES:
            return None
    return None


def _format_of_document(path: Path, formats: Sequence[ImportFormat]) -> ImportFormat | None:
    """The format of a file that is one JSON value."""
    try:
        document = json_document(path)
    except SessionError:
        return None
    return next((known for known in formats if known.is_document(document)), None)
