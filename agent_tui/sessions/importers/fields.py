"""Read JSON that another program wrote: whole files, and single values, which never fail."""

import hashlib
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.messages import (
    ImageContent,
    JsonObject,
    TextContent,
    Todo,
    UserContent,
)
from agent_tui.regular_files import open_regular_file, read_regular_file
from agent_tui.safe_paths import is_link
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


def as_exit_code(value: JsonValue) -> int | None:
    """`value` if it is a whole number of at least 0; None for -1 too, "not known" in places."""
    return 0 if value == 0 and not isinstance(value, bool) else as_count(value) or None


def text_at(data: JsonObject, *keys: str) -> str:
    """The first text that is not empty under one of `keys`."""
    return next((text for key in keys if (text := as_text(data.get(key)))), "")


def joined_text(content: JsonValue) -> str:
    """The text of a message: `content` itself, or that of its parts."""
    texts = (text_at(as_object(part), "text") for part in as_list(content))
    return as_text(content) or " ".join(text for text in texts if text)


_LONGEST_CALL_ID = 40
"""What the strictest provider takes."""


def as_call_id(name: str) -> str:
    """The id of a call, shortened if a provider would refuse it; always the same for the same."""
    if len(name) <= _LONGEST_CALL_ID:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[: _LONGEST_CALL_ID - 13]}-{digest[:12]}"


def todos_in(items: JsonValue, text_key: str) -> tuple[Todo, ...]:
    """A plan: the `items` with a text under `text_key`, and their ``status``."""
    todos: list[Todo] = []
    for item in map(as_object, as_list(items)):
        text = text_at(item, text_key)
        match item.get("status"):
            case ("in_progress" | "completed") as status:
                todos.append(Todo(text=text, status=status))
            case _:
                todos.append(Todo(text=text))
    return tuple(todo for todo in todos if todo.text)


def image_of(url: str) -> UserContent:
    """The image in a ``data:`` URL; any other URL as text."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:image/") and head.endswith(";base64"):
        return ImageContent(data=data, mime_type=head[len("data:") : -len(";base64")])
    return TextContent(text=f"[image: {url[:200]}]")


def as_timestamp(value: JsonValue) -> str:
    """A time (text or seconds since 1970) as ISO 8601; empty if it is invalid."""
    match value:
        case str():
            try:
                datetime.fromisoformat(value)
            except ValueError:
                return ""
            return value
        case bool():
            return ""
        case int() | float():
            return _iso_of_seconds(value)
        case _:
            return ""


def _iso_of_seconds(seconds: float) -> str:
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


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


def refuse_links(file: Path, root: Path) -> Path:
    """`file` if it is not reached over a link below the folder `root`.

    The files beside a session may come from someone else: a link would bring files of the user
    into the session.

    Raises:
        SessionError: It or a folder between is a link.
    """
    below = (folder for folder in file.parents if folder.is_relative_to(root) and folder != root)
    if is_link(file) or any(map(is_link, below)):
        raise SessionError(f"{file} is reached over a link.", "Replace the link with the file.")
    return file


_LONGEST_LINE = 8_192


def read_first_line(path: Path) -> str:
    """The first line of a small file beside a session; empty if it cannot be read, or is a link."""
    try:
        with open_regular_file(path, follow_links=False) as file:
            line = file.readline(_LONGEST_LINE)
    except (OSError, ValueError):
        return ""
    return line.decode("utf-8", "replace").strip("\0\r\n")


def id_from_content(path: Path) -> str:
    """A session id, as a UUID, derived only from the bytes of `path`.

    Raises:
        SessionError: The file cannot be read.
    """
    try:
        with open_regular_file(path) as file:
            digest = hashlib.file_digest(file, "sha256")
    except OSError as error:
        raise describe_fault(path, "read", error) from error
    return str(uuid.UUID(bytes=digest.digest()[:16], version=4))


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
