"""Sessions of pi (``~/.pi/agent/sessions``), versions 1 to 3: the format this program writes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agent_tui.errors import SessionError
from agent_tui.messages import JsonObject
from agent_tui.sessions.format.parse import read_session
from agent_tui.sessions.importers.builder import ForeignSession
from agent_tui.sessions.importers.fields import as_object, joined_text, text_at
from agent_tui.sessions.importers.import_format import (
    ImportFormat,
    SessionFinder,
    SessionHead,
    sessions_folder,
)

_TYPES = frozenset({"session", "message", "model_change", "compaction"})


def _read_pi(path: Path) -> ForeignSession:
    """All entries of `path`, those of every branch; the last one is where it goes on.

    Raises:
        SessionError: The file cannot be read, or holds no entry.
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


PI: Final = ImportFormat("pi", _read_pi, _is_pi, finder=SessionFinder("pi", _files, _read_head))
"""Those of our own too."""
