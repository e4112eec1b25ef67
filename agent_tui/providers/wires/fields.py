"""Reading fields of JSON that a server sent, whatever is there."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agent_tui.messages import JsonObject


def text_at(holder: Mapping[str, JsonValue], name: str) -> str:
    """The text at `name`; empty for anything else."""
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def object_at(holder: Mapping[str, JsonValue], name: str) -> JsonObject:
    """The object at `name`; an empty one for anything else."""
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def objects_at(holder: Mapping[str, JsonValue], name: str) -> Sequence[JsonObject]:
    """The objects of the list at `name`; none for anything else."""
    value = holder.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def count_at(holder: Mapping[str, JsonValue], name: str) -> int:
    """The whole number at `name`, which some servers write as text; 0 for anything else."""
    value = holder.get(name)
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return int(value) if isinstance(value, int | float) else 0
