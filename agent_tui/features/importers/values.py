"""Single values that other agents write into their session files."""

import hashlib
import uuid
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.messages import (
    ImageContent,
    TextContent,
    Todo,
    UserContent,
)
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_link
from agent_tui.sessions.file.disk import describe_fault
from agent_tui.sessions.importers.fields import as_count, as_list, as_object, text_at


def as_exit_code(value: JsonValue) -> int | None:
    """`value` if it is a whole number of at least 0; None for -1 too, "not known" in places."""
    return 0 if value == 0 and not isinstance(value, bool) else as_count(value) or None


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
