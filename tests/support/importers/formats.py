"""The formats of research agents beside those that the program imports."""

from pathlib import Path

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.sessions.importers.builder import ForeignSession, ImportFormat
from agent_tui.sessions.importers.fields import as_list, as_object, text_at
from agent_tui.sessions.importers.formats import FORMATS, read_foreign
from tests.support.importers.mini_swe_agent import read_mini_swe_agent
from tests.support.importers.openhands import read_openhands
from tests.support.importers.swe_agent import read_swe_agent


def _is_never_a_record(_number: int, _record: JsonObject) -> bool:
    return False


def _is_history_record(_number: int, record: JsonObject) -> bool:
    return not text_at(record, "type") and _has_event(as_list(record.get("history")))


def _is_mini_swe_agent(document: JsonValue) -> bool:
    return bool(as_list(as_object(document).get("messages"))) or _has_role(as_list(document))


def _is_swe_agent(document: JsonValue) -> bool:
    return _has_role(as_list(as_object(document).get("history")))


def _is_openhands(document: JsonValue) -> bool:
    history = as_list(as_object(document).get("history"))
    return _has_event(as_list(document)) or _has_event(history)


def _has_role(items: list[JsonValue]) -> bool:
    return any("role" in as_object(item) for item in items)


def _has_event(items: list[JsonValue]) -> bool:
    firsts = (as_list(item)[0] if as_list(item) else item for item in items)
    return any({"action", "observation"} & as_object(item).keys() for item in firsts)


ALL_FORMATS: tuple[ImportFormat, ...] = (
    *FORMATS,
    ImportFormat("mini-swe-agent", read_mini_swe_agent, _is_never_a_record, _is_mini_swe_agent),
    ImportFormat("swe-agent", read_swe_agent, _is_never_a_record, _is_swe_agent),
    ImportFormat("openhands", read_openhands, _is_history_record, _is_openhands),
)


def read_recorded(path: Path, format_name: str | None = None) -> ForeignSession:
    """The session in `path`, in any of the formats."""
    return read_foreign(path, format_name, ALL_FORMATS)
