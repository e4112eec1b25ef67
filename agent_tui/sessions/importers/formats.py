"""The formats of sessions that can be imported: which one a file is in, and reading it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.messages import JsonObject
from agent_tui.sessions.file.disk import describe_fault
from agent_tui.sessions.format.parse import parse_session
from agent_tui.sessions.importers.builder import ForeignSession, Warnings
from agent_tui.sessions.importers.claude_code import read_claude_code
from agent_tui.sessions.importers.codex import read_codex
from agent_tui.sessions.importers.codex_items import codex_item
from agent_tui.sessions.importers.fields import as_object, text_at
from agent_tui.sessions.importers.json_files import json_document, json_lines

_SEARCHED_LINES = 200
"""A session of Claude Code may begin with snapshots and notices of hooks."""

_PI_TYPES = frozenset({"session", "message", "model_change", "compaction"})
_CLAUDE_TYPES = frozenset({"user", "assistant", "progress", "file-history-snapshot", "system"})


def _never(_value: JsonValue) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """One format of sessions.

    Attributes:
        name: What a person calls it by, after ``--from``.
        read: Reads a whole file; raises `SessionError` where it is none of this format.
        is_record: Whether a line with this number and value is found in this format alone.
        is_document: The same for a file that is one JSON value.
    """

    name: str
    read: Callable[[Path], ForeignSession]
    is_record: Callable[[int, JsonObject], bool]
    is_document: Callable[[JsonValue], bool] = _never


def read_pi(path: Path) -> ForeignSession:
    """All entries of `path`, those of every branch; the last one is where it goes on.

    Raises:
        SessionError: The file cannot be read, or holds no entry.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise describe_fault(path, "read", error) from error
    parsed = parse_session(data, fallback_id=path.stem.rpartition("_")[2])
    if not parsed.entries:
        raise SessionError(f"{path}: no line of it is an entry of a session.")
    return ForeignSession(parsed.header, parsed.entries, parsed.warnings)


def _is_pi(_number: int, record: JsonObject) -> bool:
    kind = text_at(record, "type")
    return kind in _PI_TYPES and (kind != "message" or "message" in record)


def _is_claude_code(_number: int, record: JsonObject) -> bool:
    return text_at(record, "type") in _CLAUDE_TYPES and ("uuid" in record or "snapshot" in record)


def _is_codex(number: int, record: JsonObject) -> bool:
    return "record_type" in record or codex_item(number, record) is not None


PI: Final = ImportFormat("pi", read_pi, _is_pi)
"""Sessions of pi, versions 1 to 3, and our own: the format this program writes."""

FORMATS: Final[tuple[ImportFormat, ...]] = (
    PI,
    ImportFormat("claude", read_claude_code, _is_claude_code),
    ImportFormat("codex", read_codex, _is_codex),
)
"""Every format that the program imports."""

FORMAT_NAMES: Final = tuple(known.name for known in FORMATS)


def read_foreign(
    path: Path, format_name: str | None = None, formats: Sequence[ImportFormat] = FORMATS
) -> ForeignSession:
    """The session in `path`. Nothing is written to it or beside it.

    Branches that were left come along; the last entry is on the present one.

    Args:
        path: The file.
        format_name: The format it is in; None finds out.
        formats: Those to choose from.

    Raises:
        SessionError: It cannot be read, is of no known format, or holds no message.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise SessionError(f"{path} {what}.", "Name the file of a session.")
    name = format_name or detect_format(path, formats)
    found = next((known for known in formats if known.name == name), None)
    if found is None:
        raise SessionError(f"There is no format {name}.", _hint(formats))
    return found.read(path)


def detect_format(path: Path, formats: Sequence[ImportFormat] = FORMATS) -> str:
    """The name of the format of `path`, told by its content.

    Raises:
        SessionError: The file cannot be read, or is of no known format.
    """
    found = _format_of_records(path, formats) or _format_of_document(path, formats)
    if found is None and not path.stat().st_size:
        raise SessionError(f"{path} is empty.", "Name the file of a session.")
    if found is None:
        raise SessionError(
            f"{path} is not a session that can be imported.",
            f"{_hint(formats)} Name one with --from if the file is damaged.",
        )
    return found.name


def _hint(formats: Sequence[ImportFormat]) -> str:
    return f"Sessions of these can be: {', '.join(known.name for known in formats)}."


def _format_of_records(path: Path, formats: Sequence[ImportFormat]) -> ImportFormat | None:
    """The format of the first line that tells it."""
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
