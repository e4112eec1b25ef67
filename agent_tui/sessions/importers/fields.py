"""Read JSON that another program wrote: whole files, and single values, which never fail."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.messages import (
    JsonObject,
)
from agent_tui.regular_files import open_regular_file, read_regular_file
from agent_tui.sessions.file.chunks import CHUNK_BYTES, LongLine, read_lines
from agent_tui.sessions.file.disk import describe_fault
from agent_tui.sessions.importers.builder import Warnings
from agent_tui.text import repair_json

_MOST_COUNT = 2**53
"""Above it, JSON numbers are not exact: no program counts so far."""

_MOST_DEPTH = 200
"""Lists and objects within each other; pydantic, which checks them, gives up at 255."""


def as_object(value: JsonValue) -> JsonObject:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: JsonValue) -> list[JsonValue]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: JsonValue) -> str:
    """`value` if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: JsonValue) -> int:
    """`value` if it is a whole number from 0 to 2**53, else 0."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value <= _MOST_COUNT else 0


def text_at(data: JsonObject, *keys: str) -> str:
    """The first text that is not empty under one of `keys`."""
    return next((text for key in keys if (text := as_text(data.get(key)))), "")


def joined_text(content: JsonValue) -> str:
    """The text of a message: `content` itself, or that of its parts."""
    texts = (text_at(as_object(part), "text") for part in as_list(content))
    return as_text(content) or " ".join(text for text in texts if text)


MAX_DOCUMENT_BYTES = 256 * 1024 * 1024
"""Largest file that is one JSON document; real ones are far smaller."""


def json_lines(path: Path, warnings: Warnings) -> Iterator[tuple[int, JsonValue]]:
    r"""The lines of `path` with their numbers, one at a time; they end at ``\n`` only.

    An unreadable line is skipped with a warning.

    Raises:
        SessionError: The file cannot be read.
    """
    for number, line in _lines(path):
        if isinstance(line, LongLine):
            problem = f"too long to read; left out ({line.size_bytes:,} bytes)"
            warnings.add(f"line {number}: {problem}")
            continue
        if not line.strip(b"\x00 \t\r\n"):
            continue
        try:
            yield number, read_json(line)
        except ValueError as error:
            torn = not line.endswith(b"\n")
            problem = "cut off in the middle" if torn else str(error)
            warnings.add(f"line {number}: {problem}; left out ({len(line):,} bytes)")


def json_document(path: Path) -> JsonValue:
    """The JSON value in the file `path`.

    Raises:
        SessionError: It cannot be read, is too large, or is not JSON.
    """
    try:
        size = path.stat().st_size
        if size > MAX_DOCUMENT_BYTES:
            raise SessionError(f"{path} is larger than {MAX_DOCUMENT_BYTES:,} bytes.")
        data = read_regular_file(path)
    except OSError as error:
        raise describe_fault(path, "read", error) from error
    try:
        return read_json(data)
    except ValueError as error:
        raise SessionError(f"{path}: {error}.", "Is the file complete?") from error


def read_json(data: bytes) -> JsonValue:
    """Parse `data` as JSON, with lone surrogates and invalid UTF-8 replaced.

    Raises:
        ValueError: It is not JSON; the text says why.
    """
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").strip("\x00 \t\r\n")
    try:
        value = cast(JsonValue, json.loads(text, strict=False))
        if text.count("[") + text.count("{") > _MOST_DEPTH and _is_too_deep(value):
            raise RecursionError
        return repair_json(value)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"not valid JSON ({error})") from error


def _is_too_deep(value: JsonValue) -> bool:
    """Whether more than `_MOST_DEPTH` lists and objects are within each other."""
    level = [value]
    for _ in range(_MOST_DEPTH + 1):
        inner: list[JsonValue] = []
        for one in level:
            if isinstance(one, dict):
                inner.extend(one.values())
            elif isinstance(one, list):
                inner.extend(one)
        level = inner
    return bool(level)


def _lines(path: Path) -> Iterator[tuple[int, bytes | LongLine]]:
    try:
        with open_regular_file(path, buffering=CHUNK_BYTES) as file:
            yield from enumerate(read_lines(file), start=1)
    except OSError as error:
        raise describe_fault(path, "read", error) from error
