"""Repair text that cannot be stored or sent: lone surrogates, numbers that JSON lacks."""

import math
from operator import is_not
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pydantic would double the time of --version
    from pydantic import JsonValue


def repair_text(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced by U+FFFD.

    Returns the same object when there is nothing to repair.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def repair_json(value: "JsonValue") -> "JsonValue":
    """`value` with every text in it repaired, keys included, and null for NaN and infinities.

    Returns the same object when there is nothing to repair.
    """
    match value:
        case str():
            return repair_text(value)
        case float() if not math.isfinite(value):
            return None
        case list():
            items = [repair_json(item) for item in value]
            return items if any(map(is_not, items, value)) else value
        case dict():
            keys = [repair_text(key) for key in value]
            inner = [repair_json(item) for item in value.values()]
            if any(map(is_not, keys, value)) or any(map(is_not, inner, value.values())):
                return dict(zip(keys, inner, strict=True))
            return value
        case _:
            return value
