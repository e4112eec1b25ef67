"""Mending text that cannot be stored, sent or shown: lone surrogates, control characters."""

import math
import re
from operator import is_not
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pydantic would double the time of --version
    from pydantic import JsonValue

_ESCAPE_SEQUENCES = re.compile(
    r"""
      \x1b\[ [0-?]* [ -/]* [@-~]                  # CSI: colours, cursor movement
    | \x9b   [0-?]* [ -/]* [@-~]                  # the same, opened by one C1 character
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])        # OSC, DCS, SOS, PM, APC: strings ...
      [^\x07\x1b\x9c\n]* (?:\x07|\x1b\\|\x9c)?      # ... up to their end
    | \x1b [ -/]* [0-~]                           # other two- and three-character escapes
    """,
    re.VERBOSE,
)
_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"  # C0, C1, bidi overrides
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


def strip_escape_sequences(text: str) -> str:
    """`text` without the sequences that steer a terminal, their contents included."""
    return _ESCAPE_SEQUENCES.sub("", text)


def strip_control_characters(text: str) -> str:
    """`text` without escape sequences, control characters and bidi overrides; keeps \\n and \\t."""
    return _CONTROL_CHARACTERS.sub("", strip_escape_sequences(text.replace("\r\n", "\n")))
