"""Lists of chat messages as plain dicts, in the shape of OpenAI's or Anthropic's API."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    JsonObject,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_tui.providers.wires.anthropic import anthropic_payload
from agent_tui.providers.wires.chat.messages import openai_messages

Shape: TypeAlias = Literal["openai", "anthropic"]
ChatMessage: TypeAlias = Mapping[str, Any]
"""One message: ``{"role": "user", "content": "..."}`` and so on."""

_INSTRUCTIONS = ("system", "developer")
_ANTHROPIC_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}
)


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """The contents of one dict: several messages if Anthropic's form combines results."""

    given: ChatMessage
    messages: tuple[Message, ...]


def shape_of(messages: Sequence[ChatMessage]) -> Shape:
    """The form of `messages`; OpenAI's if both forms are the same."""
    kinds: set[object] = set()
    for message in messages:
        if isinstance(content := message.get("content"), list):
            parts = cast("list[object]", content)
            kinds |= {part["type"] for part in parts if isinstance(part, dict) and "type" in part}
    return "anthropic" if kinds & _ANTHROPIC_BLOCKS else "openai"


def leading_instructions(messages: Sequence[ChatMessage]) -> int:
    """The number of instruction messages at the beginning."""
    count = 0
    while count < len(messages) and messages[count].get("role") in _INSTRUCTIONS:
        count += 1
    return count


def read_messages(messages: Sequence[ChatMessage]) -> list[ReadMessage]:
    """Parse `messages` in either form.

    Raises:
        ValueError: One is not a chat message; the text says which and why.
    """
    names: dict[str, str] = {}
    found: list[ReadMessage] = []
    for number, given in enumerate(messages):
        try:
            found.append(ReadMessage(given, tuple(_read(given, names))))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"messages[{number}] cannot be read: {why}") from error
    return found


def written_messages(messages: Sequence[Message], shape: Shape) -> list[JsonObject]:
    """`messages` as dicts of `shape`."""
    first = messages[0] if messages else None
    if shape == "openai":
        written = openai_messages("", messages, keeps_ids=True)
        has_opening = not isinstance(first, UserMessage)
    else:
        payload = anthropic_payload("", messages)["messages"]
        assert isinstance(payload, list)
        written = [one for one in payload if isinstance(one, dict)]
        has_opening = isinstance(first, AssistantMessage)
    # Requests begin with the user's role, which the wires ensure; this is part of one.
    return written[1:] if has_opening else written


def _read(given: object, names: dict[str, str]) -> Iterator[Message]:
    if not isinstance(given, Mapping):
        hint = "; use its model_dump()" if hasattr(given, "model_dump") else ""
        raise TypeError(f"it is no dict{hint}")
    yield from _read_dict(cast("ChatMessage", given), names)


def _read_dict(given: ChatMessage, names: dict[str, str]) -> Iterator[Message]:
    role, content = given["role"], given.get("content")
    parts = _parts(content)
    match role:
        case "assistant":
            reply = AssistantMessage(content=(*_reply_parts(parts), *_calls(given)))
            names.update({call.id: call.name for call in reply.tool_calls})
            yield reply
        case "tool":
            is_error = bool(given.get("is_error"))
            yield _result(str(given["tool_call_id"]), parts, names, is_error=is_error)
        case "user" | "system" | "developer":
            said: list[Any] = []
            for part in parts:
                if part.get("type") == "tool_result":
                    answer = _parts(part.get("content"))
                    is_error = bool(part.get("is_error"))
                    yield _result(str(part["tool_use_id"]), answer, names, is_error=is_error)
                else:
                    said.append(part)
            if said:
                yield UserMessage(content=tuple(map(_user_part, said)))
        case _:
            raise ValueError(f"the role {role!r} is none of user, assistant, tool and system")


def _parts(content: object) -> list[Mapping[str, Any]]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise TypeError("its content is neither a text nor a list of parts")
    given = cast("list[str | Mapping[str, Any]]", content)
    return [{"type": "text", "text": one} if isinstance(one, str) else one for one in given]


def _reply_parts(parts: Sequence[Mapping[str, Any]]) -> Iterator[AssistantContent]:
    for part in parts:
        match part.get("type"):
            case "tool_use":
                yield ToolCall(id=part["id"], name=part["name"], arguments=dict(part["input"]))
            case "thinking":
                yield ThinkingContent(thinking=part["thinking"], signature=part.get("signature"))
            case "redacted_thinking":
                yield ThinkingContent(thinking="", signature=part.get("data"), redacted=True)
            case _:
                yield TextContent(text=_text(part))


def _calls(given: ChatMessage) -> Iterator[ToolCall]:
    for call in given.get("tool_calls") or ():
        function = call["function"]
        yield ToolCall(
            id=call["id"], name=function["name"], arguments=_arguments(function["arguments"])
        )


def _arguments(given: str | JsonObject) -> JsonObject:
    """The arguments of a call; anything but an object is kept as it is."""
    try:
        value: JsonValue = json.loads(given or "{}") if isinstance(given, str) else given
    except (ValueError, RecursionError):
        value = given
    return value if isinstance(value, dict) else {"arguments": value}


def _result(
    call_id: str,
    parts: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    *,
    is_error: bool = False,
) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call_id,
        tool_name=names.get(call_id, ""),
        content=tuple(map(_user_part, parts)),
        is_error=is_error,
    )


def _user_part(part: Mapping[str, Any]) -> UserContent:
    match part:
        case {"type": "image", "source": {"type": "base64", "data": data, "media_type": kind}}:
            return ImageContent(data=data, mime_type=kind)
        case {"type": "image_url", "image_url": {"url": str(url)}} if url.startswith("data:"):
            kind, _, data = url.removeprefix("data:").partition(";base64,")
            return ImageContent(data=data, mime_type=kind)
        case _:
            return TextContent(text=_text(part))


def _text(part: Mapping[str, Any]) -> str:
    """The text of a part; for other kinds, the part as JSON."""
    text = part.get("text", part.get("refusal"))
    return text if isinstance(text, str) else json.dumps(part, ensure_ascii=False)
