"""What a server says of itself when it is met: its words, its instructions, what it can do."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent_tui.messages import JsonObject
from agent_tui.safe_text import strip_control_characters

_MAX_WORDS: Final = 200
_MAX_INSTRUCTIONS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Introduction:
    """What the answer to ``initialize`` tells, made fit to be shown.

    Args:
        words: What it is, in one line of its own; may be empty.
        instructions: How its tools are used, in its own words; may be empty.
        capabilities: Such as ``prompts`` and ``resources``.
    """

    words: str = ""
    instructions: str = ""
    capabilities: frozenset[str] = frozenset()


def introduction(result: JsonObject) -> Introduction:
    """What `result`, the answer to ``initialize``, holds of this; anything else is passed over."""
    capabilities = result.get("capabilities")
    instructions = _text(result, "instructions", _MAX_INSTRUCTIONS)
    return Introduction(
        next(_lines(result, instructions), ""),
        instructions,
        frozenset(capabilities) if isinstance(capabilities, dict) else frozenset(),
    )


def _lines(result: JsonObject, instructions: str) -> Iterator[str]:
    """Lines that say what it is, the best first."""
    info = result.get("serverInfo")
    given = info if isinstance(info, dict) else {}
    for text in (
        _text(given, "description", _MAX_WORDS),
        instructions.partition("\n")[0],
        _text(given, "title", _MAX_WORDS),
    ):
        if line := " ".join(text.lstrip("# ").split()):
            yield line if len(line) <= _MAX_WORDS else f"{line[:_MAX_WORDS].rstrip()}…"


def _text(given: JsonObject, key: str, limit: int) -> str:
    value = given.get(key)
    plain = strip_control_characters(value).strip() if isinstance(value, str) else ""
    return plain if len(plain) <= limit else f"{plain[:limit].rstrip()}…"
