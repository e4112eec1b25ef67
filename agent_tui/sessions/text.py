"""Mending text that cannot be stored, sent or shown: lone surrogates, control characters."""

import re
from typing import cast

from pydantic import JsonValue

_CONTROL_CHARACTERS = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI sequences: colours, cursor movement
    "|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)"  # OSC sequences: titles, links, clipboard
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"  # C0, C1, bidi overrides
)


def repair_text(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced by U+FFFD.

    Returns the same object when there is nothing to repair.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def repair_json(value: JsonValue) -> JsonValue:
    """`value` with every text in it repaired, keys included; the same object if all is well."""
    match value:
        case str():
            return repair_text(value)
        case list():
            items = [repair_json(item) for item in value]
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        case dict():
            pairs = [(repair_text(key), repair_json(inner)) for key, inner in value.items()]
            is_same = all(
                key is old_key and inner is old_inner
                for (key, inner), (old_key, old_inner) in zip(pairs, value.items(), strict=True)
            )
            return value if is_same else cast(JsonValue, dict(pairs))
        case _:
            return value


def strip_control_characters(text: str) -> str:
    """`text` without escape sequences, control characters and bidi overrides; keeps \\n and \\t."""
    return _CONTROL_CHARACTERS.sub("", text.replace("\r\n", "\n"))
