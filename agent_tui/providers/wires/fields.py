"""Reads fields of JSON that a server sent, whatever they contain."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from agent_tui.messages import JsonObject

_MOST: Final = 10**12
"""The largest plausible token count."""


def text_at(holder: Mapping[str, JsonValue], name: str) -> str:
    """The text at `name`; empty for anything else."""
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def object_at(holder: Mapping[str, JsonValue], name: str) -> JsonObject:
    """The object at `name`; an empty one for anything else."""
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def objects_at(holder: Mapping[str, JsonValue], name: str) -> Sequence[JsonObject]:
    """The objects in the list at `name`; none for anything else."""
    value = holder.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def count_at(holder: Mapping[str, JsonValue], name: str) -> int:
    """The count at `name`, which some servers write as text; 0 for anything else."""
    return _count(holder.get(name)) or 0


def counts_at(holder: Mapping[str, JsonValue], name: str) -> JsonObject:
    """The counts in the object at `name` and in objects within it; anything else is left out.

    Implausible values (NaN, infinite, negative, huge) count as not sent.
    """
    given = object_at(holder, name)
    counted: JsonObject = {}
    for inner, value in given.items():
        kept = counts_at(given, inner) if isinstance(value, dict) else _count(value)
        if kept is not None and kept != {}:
            counted[inner] = kept
    return counted


def _count(value: JsonValue) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if math.isfinite(number) and 0 <= number <= _MOST else None
