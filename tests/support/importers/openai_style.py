"""Messages in the shape of OpenAI's chat interface, as benchmark harnesses record them."""

import json
from typing import cast

from pydantic import JsonValue

from agent_tui.features.importers.values import image_of
from agent_tui.messages import (
    JsonObject,
    TextContent,
    ToolCall,
    Usage,
    UserContent,
)
from agent_tui.sessions.importers.fields import as_count, as_list, as_object, as_text, text_at
from agent_tui.text import repair_json


def said_parts(content: JsonValue) -> list[UserContent]:
    """Text and images of a message's content; images that are only linked to become a line."""
    if isinstance(content, str):
        return [TextContent(text=content)] if content else []
    parts: list[UserContent] = []
    for part in map(as_object, as_list(content)):
        if url := text_at(as_object(part.get("image_url")), "url"):
            parts.append(image_of(url))
        elif text := text_at(part, "text"):
            parts.append(TextContent(text=text))
    return parts


def content_text(content: JsonValue) -> str:
    """All text of a message's content."""
    return "\n".join(p.text for p in said_parts(content) if isinstance(p, TextContent))


def calls_of(message: JsonObject) -> list[ToolCall]:
    """The calls of a reply, in order; arguments that are no JSON object stand under ``raw``."""
    calls: list[ToolCall] = []
    for item in map(as_object, as_list(message.get("tool_calls"))):
        function = as_object(item.get("function"))
        calls.append(
            ToolCall(
                id=text_at(item, "id"),
                name=text_at(function, "name") or "unknown",
                arguments=_arguments(function.get("arguments")),
            )
        )
    return calls


def usage_of(counted: JsonValue) -> Usage | None:
    """The tokens of one request; None where they were not recorded."""
    facts = as_object(counted)
    sent, written = as_count(facts.get("prompt_tokens")), as_count(facts.get("completion_tokens"))
    if not sent:
        return None
    read = as_count(as_object(facts.get("prompt_tokens_details")).get("cached_tokens"))
    return Usage(
        input=max(sent - read, 0), output=written, cache_read=read, total_tokens=sent + written
    )


def model_of(name: JsonValue) -> tuple[str, str]:
    """Provider and model of a name such as ``anthropic/claude-sonnet-4-5``."""
    provider, slash, model_id = as_text(name).partition("/")
    return (provider, model_id) if slash else ("", provider)


def _arguments(written: JsonValue) -> JsonObject:
    if isinstance(written, dict):
        return written
    text = as_text(written)
    try:
        value = repair_json(cast(JsonValue, json.loads(text or "{}", strict=False)))
    except (ValueError, RecursionError):
        return {"raw": text}
    return value if isinstance(value, dict) else {"raw": text}
