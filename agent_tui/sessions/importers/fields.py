"""Taking single values out of JSON that another program wrote; nothing here fails."""

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantContent,
    ImageContent,
    JsonObject,
    TextContent,
    Todo,
    UserContent,
)


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
    """`value` if it is a whole number of at least 0, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def as_exit_code(value: JsonValue) -> int | None:
    """`value` if it is a whole number of at least 0; None for -1 too, "not known" in places."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def text_at(data: JsonObject, *keys: str) -> str:
    """The first text that is not empty under one of `keys`."""
    return next((text for key in keys if (text := as_text(data.get(key)))), "")


def joined_text(content: JsonValue) -> str:
    """The text of a message: `content` itself, or that of its parts."""
    texts = (text_at(as_object(part), "text") for part in as_list(content))
    return as_text(content) or " ".join(text for text in texts if text)


def text_of(content: Sequence[UserContent | AssistantContent]) -> str:
    """All text of a message's content, a line for each part."""
    return "\n".join(part.text for part in content if isinstance(part, TextContent))


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
    """The image that a ``data:`` address holds; the address as text where it is another."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:image/") and head.endswith(";base64"):
        return ImageContent(data=data, mime_type=head[len("data:") : -len(";base64")])
    return TextContent(text=f"[image: {url[:200]}]")


def as_timestamp(value: JsonValue) -> str:
    """ISO 8601 for a time that is a text or a number of seconds since 1970; else empty."""
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
