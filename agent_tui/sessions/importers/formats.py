"""Reading a session of any agent we know: the format is told by what the file holds."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.messages import JsonObject
from agent_tui.sessions.importers.builder import ForeignSession, Warnings
from agent_tui.sessions.importers.claude_code import read_claude_code
from agent_tui.sessions.importers.codex import read_codex
from agent_tui.sessions.importers.codex_items import codex_item
from agent_tui.sessions.importers.fields import as_list, as_object, text_at
from agent_tui.sessions.importers.json_files import json_document, json_lines
from agent_tui.sessions.importers.mini_swe_agent import read_mini_swe_agent
from agent_tui.sessions.importers.openhands import read_openhands
from agent_tui.sessions.importers.pi import read_pi
from agent_tui.sessions.importers.swe_agent import read_swe_agent

__all__ = ["FORMATS", "ForeignFormat", "ForeignSession", "detect_format", "read_foreign"]

ForeignFormat: TypeAlias = Literal[
    "pi", "claude", "codex", "openhands", "mini-swe-agent", "swe-agent"
]

_READERS: Final[Mapping[ForeignFormat, Callable[[Path], ForeignSession]]] = MappingProxyType(
    {
        "pi": read_pi,
        "claude": read_claude_code,
        "codex": read_codex,
        "openhands": read_openhands,
        "mini-swe-agent": read_mini_swe_agent,
        "swe-agent": read_swe_agent,
    }
)
FORMATS: Final[tuple[ForeignFormat, ...]] = tuple(_READERS)
"""Every format that can be read; ``pi`` is the one this program writes, too."""

_LOOKED_AT_LINES = 200
"""A session of Claude Code may begin with snapshots and notices of hooks."""

_OF_PI = frozenset({"session", "message", "model_change", "compaction"})
_OF_CLAUDE = frozenset({"user", "assistant", "progress", "file-history-snapshot", "system"})


def read_foreign(path: Path, format: ForeignFormat | None = None) -> ForeignSession:
    """The session in `path`. Nothing is written to it or beside it.

    Branches that were left come along; the last entry is on the present one.

    Args:
        path: The file.
        format: What wrote it; None finds out.

    Raises:
        SessionError: It cannot be read, is of no known format, or holds no message.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise SessionError(f"{path} {what}.", "Name the file of a session.")
    return _READERS[format or detect_format(path)](path)


def detect_format(path: Path) -> ForeignFormat:
    """The format of `path`, told by its content.

    Raises:
        SessionError: The file cannot be read, or is of no known format.
    """
    found = _format_of_lines(path) or _format_of_document(path)
    if found is None and not path.stat().st_size:
        raise SessionError(f"{path} is empty.", "Name the file of a session.")
    if found is None:
        raise SessionError(
            f"{path} is not a session of a known format.",
            f"Known are {', '.join(FORMATS)}; name one with --from if the file is damaged.",
        )
    return found


def _format_of_lines(path: Path) -> ForeignFormat | None:
    """Of the first line that tells it."""
    for number, value in json_lines(path, Warnings()):
        line = as_object(value)
        kind = text_at(line, "type")
        if codex_item(number, line) is not None or "record_type" in line:
            return "codex"
        if kind in _OF_PI:
            return "pi"
        if kind in _OF_CLAUDE and ("uuid" in line or "snapshot" in line):
            return "claude"
        if not kind and _has_event(as_list(line.get("history"))):
            return "openhands"
        if number >= _LOOKED_AT_LINES:
            return None
    return None


def _format_of_document(path: Path) -> ForeignFormat | None:
    try:
        document = json_document(path)
    except SessionError:
        return None
    items = as_list(document)
    run = as_object(document)
    if as_list(run.get("messages")) or _has_role(items):
        return "mini-swe-agent"
    if _has_role(as_list(run.get("history"))):
        return "swe-agent"
    if _has_event(items) or _has_event(as_list(run.get("history"))):
        return "openhands"
    return None


def _has_role(items: list[JsonValue]) -> bool:
    return any("role" in as_object(item) for item in items)


def _has_event(items: list[JsonValue]) -> bool:
    firsts = (as_list(item)[0] if as_list(item) else item for item in items)
    return any(_is_event(as_object(item)) for item in firsts)


def _is_event(item: JsonObject) -> bool:
    return "action" in item or "observation" in item
