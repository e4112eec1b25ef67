"""The formats of sessions that can be imported: each one file and one line here."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_tui.errors import SessionError
from agent_tui.safe_paths import is_file, is_folder
from agent_tui.sessions.importers.builder import ForeignSession, Warnings
from agent_tui.sessions.importers.claude_code import CLAUDE_CODE
from agent_tui.sessions.importers.codex import CODEX
from agent_tui.sessions.importers.fields import as_object
from agent_tui.sessions.importers.import_format import ImportFormat
from agent_tui.sessions.importers.json_files import json_document, json_lines
from agent_tui.sessions.importers.pi import PI

_SEARCHED_LINES = 200
"""A session of Claude Code may begin with snapshots and notices of hooks."""

FORMATS: Final[tuple[ImportFormat, ...]] = (
    PI,
    CLAUDE_CODE,
    CODEX,
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
    if not is_file(path):
        what = "is a folder" if is_folder(path) else "does not exist"
        raise SessionError(f"{path} {what}.", "Name a session file.")
    name = format_name or detect_format(path, formats)
    found = next((known for known in formats if known.name == name), None)
    if found is None:
        raise SessionError(f"Unknown format {name}.", _hint(formats))
    return found.read(path)


def detect_format(path: Path, formats: Sequence[ImportFormat] = FORMATS) -> str:
    """The name of the format of `path`, told by its content.

    Raises:
        SessionError: The file cannot be read, or is of no known format.
    """
    found = _format_of_records(path, formats) or _format_of_document(path, formats)
    if found is None and not path.stat().st_size:
        raise SessionError(f"{path} is empty.", "Name a session file.")
    if found is None:
        raise SessionError(
            f"{path} is not a session that can be imported.",
            f"{_hint(formats)} Name one with --from if the file is damaged.",
        )
    return found.name


def _hint(formats: Sequence[ImportFormat]) -> str:
    return f"Supported formats: {', '.join(known.name for known in formats)}."


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
