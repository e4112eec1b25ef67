"""What a person reads of a program's reply in JSON: its title, its text, its state, its error."""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from agent_tui.omissions import cut_end_mark

_READ = frozenset(
    (
        *("title", "name", "summary", "description", "body", "text", "content", "detail"),
        *("state", "status", "message", "reason", "error", "number", "key", "identifier"),
    )
)
"""Fields with these names, of RFC 9457 and of what services for issues and code have in common."""

_TEXT_CHARS, _MOST_FIELDS = 1_200, 40


def read_fields(text: str, written: str = "") -> str:
    """The fields of a reply in JSON that people read, one a line; empty if `text` is no such reply.

    Args:
        text: The reply.
        written: What its call wrote; a text that is in it is only named.
    """
    if text[:1] not in ("{", "["):
        return ""
    try:
        fields = [*_fields("", json.loads(text))]
    except (ValueError, RecursionError):
        return ""
    lines = [_line(name, value, written) for name, value in fields]
    more = [f"[{len(lines) - _MOST_FIELDS} more fields]"] if len(lines) > _MOST_FIELDS else []
    return "\n".join((*lines[:_MOST_FIELDS], *more)) or f"(JSON, {len(text):,} characters)"


def _fields(name: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    match value:
        case dict(fields):
            for key, item in fields.items():
                yield from _fields(key, item)
        case list(items):
            for item in items:
                yield from _fields(name, item)
        case str() | int() if name in _READ and str(value).strip():
            yield name, str(value).strip()
        case _:
            pass


def _line(name: str, value: str, written: str) -> str:
    if len(value) > len("(as written above)") and value in written:
        return f"{name}: (as written above)"
    cut = value[:_TEXT_CHARS]
    cut += cut_end_mark(len(value) - len(cut)) if len(value) > len(cut) else ""
    return f"{name}:{chr(10) if chr(10) in cut else ' '}{cut}"
