"""Parts, usage and plans, as both programs of Kimi write them, in our form."""

import re
from pathlib import Path

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.features.importers.values import image_of, refuse_links, todos_in
from agent_tui.messages import (
    AssistantContent,
    JsonObject,
    TextContent,
    ThinkingContent,
    Todo,
    Usage,
    UserContent,
)
from agent_tui.sessions.importers.builder import WarnOf
from agent_tui.sessions.importers.fields import (
    as_count,
    as_list,
    as_object,
    as_text,
    json_document,
    text_at,
)

EXIT_CODE = re.compile(r"(?:failed with exit code: |exited with code )(\d{1,3})\b")


def user_parts(content: JsonValue, warn: WarnOf) -> list[UserContent]:
    """Text and images of a message or a result; `warn` gets what is neither."""
    if isinstance(content, str):
        return [TextContent(text=content)] if content else []
    parts: list[UserContent] = []
    for part in map(as_object, as_list(content)):
        kind, text = text_at(part, "type"), text_at(part, "text")
        url = text_at(as_object(part.get("imageUrl") or part.get("image_url")), "url")
        if kind == "text":
            parts += [TextContent(text=text)] if text else []
        elif kind == "image_url":
            parts.append(image_of(url))
        else:
            warn(f"a part of unknown kind {kind[:40]!r}; left out")
    return parts


def reply_part(part: JsonObject, warn: WarnOf) -> list[AssistantContent]:
    """A part of the model's message: one or none."""
    match part.get("type"):
        case "text":
            text = text_at(part, "text")
            return [TextContent(text=text)] if text else []
        case "think":
            thought = text_at(part, "think")
            return [ThinkingContent(thinking=thought)] if thought else []
        case kind:
            warn(f"a part of unknown kind {str(kind)[:40]!r}; left out")
            return []


def usage_of(counted: JsonObject) -> Usage | None:
    """The tokens of one request; None if nothing was counted."""
    fresh = as_count(counted.get("inputOther")) or as_count(counted.get("input_other"))
    read = as_count(counted.get("inputCacheRead")) or as_count(counted.get("input_cache_read"))
    stored = as_count(counted.get("inputCacheCreation"))
    stored = stored or as_count(counted.get("input_cache_creation"))
    written = as_count(counted.get("output"))
    if not fresh + read + stored:
        return None
    return Usage(
        input=fresh,
        output=written,
        cache_read=read,
        cache_write=stored,
        total_tokens=fresh + read + stored + written,
    )


def plan_of(items: JsonValue) -> tuple[Todo, ...]:
    """A plan; Kimi says "done" of what is completed."""
    renamed: list[JsonValue] = [
        {**item, "status": "completed"} if item.get("status") == "done" else item
        for item in map(as_object, as_list(items))
    ]
    return todos_in(renamed, "title")


def exit_code_in(text: str, *, is_error: bool) -> int | None:
    """The exit code that a failed command's result names; 0 for one that did not fail."""
    if not is_error:
        return 0
    found = EXIT_CODE.search(text)
    return int(found[1]) if found else None


def facts_beside(path: Path) -> JsonObject:
    """The JSON object in a file beside a session; an empty one if it is a link or unreadable."""
    try:
        return as_object(json_document(refuse_links(path, path.parent)))
    except SessionError:
        return {}


def title_of(state: JsonObject) -> str:
    """The name of a session in its ``state.json``; empty without one."""
    return as_text(state.get("custom_title")) or text_at(state, "title")
