"""Names of settings: ``compaction.auto`` to its parts, and the lines of keys in a file."""

import re
import tomllib
from collections.abc import Mapping
from typing import TypeAlias, cast

SettingKey: TypeAlias = tuple[str, ...]
"""``("compaction", "auto")``; parts may contain dots, as model names do."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def join_key(key: SettingKey) -> str:
    """The key as it is written in TOML: ``models."openai/qwen3".window``."""
    return ".".join(part if _BARE.fullmatch(part) else _quote(part) for part in key)


def parse_key(text: str) -> SettingKey:
    """Parse a key as written in TOML into its parts.

    Raises:
        ValueError: It is not a key.
    """
    if "\n" in text or "\r" in text or "=" in re.sub(r'"[^"]*"', "", text):
        raise ValueError(f"{text!r} is not the name of a setting")
    try:
        table: object = tomllib.loads(f"{text} = 0")
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{text!r} is not the name of a setting") from error
    parts: list[str] = []
    while isinstance(table, dict):
        ((part, table),) = cast("dict[str, object]", table).items()
        parts.append(part)
    return tuple(parts)


def key_lines(text: str) -> Mapping[SettingKey, int]:
    """Line number, from 1, of each section and key of a TOML text."""
    lines: dict[SettingKey, int] = {}
    section: SettingKey = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(r"\s*\[+([^\[\]]+)\]", line):
            section = _key_or_nothing(header[1])
            lines[section] = number
        elif assignment := re.match(r"\s*([\w.\"'/:-]+)\s*=", line):
            lines[section + _key_or_nothing(assignment[1])] = number
    return lines


def line_of(lines: Mapping[SettingKey, int], key: SettingKey) -> int:
    """The line of `key`, of its first part set, or of its section; 0 if unknown."""
    below = [line for known, line in lines.items() if known[: len(key)] == key]
    if below:
        return min(below)
    for length in range(len(key), 0, -1):
        if line := lines.get(key[:length]):
            return line
    return 0


def _key_or_nothing(text: str) -> SettingKey:
    try:
        return parse_key(text.strip())
    except ValueError:
        return ()


def _quote(part: str) -> str:
    escaped = part.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
