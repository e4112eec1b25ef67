"""Our messages in the two formats models are spoken to: OpenAI chat and Anthropic messages.

Both writers expect settled messages (every call followed by its result) and promise what the
strict services demand: nothing empty, names and ids in the allowed alphabet, no lone
surrogates, images only as user content, and for Anthropic the roles in turn.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, assert_never

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
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
from agent_tui.text import repair_json, repair_text

ModelFamily: TypeAlias = Literal["anthropic", "gemini", "reasoning", "other"]
"""Which extras a model takes back: signed thinking, long call ids, plain reasoning, nothing."""

NO_OUTPUT = "(no output)"
CONTINUE = "(The conversation goes on.)"
"""Stands where a format demands a user message and there is none to send."""
GO_ON = "Go on."
"""Follows a reply that was cut: many models refuse a request that ends with their own words."""

_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MAX_ID_CHARS = 40
"""OpenAI's limit on the id of a tool call; Anthropic only restricts the alphabet."""
_MAX_NAME_CHARS = 64

_Block: TypeAlias = JsonObject


def model_family(name: str) -> ModelFamily:
    """What the model called `name` takes back in its own replies."""
    lowered = name.lower()
    if "claude" in lowered or lowered.startswith("anthropic/"):
        return "anthropic"
    if "gemini" in lowered:
        return "gemini"
    if lowered.startswith(("deepseek/", "moonshot/")):
        return "reasoning"
    return "other"


def openai_messages(
    system: str, messages: Sequence[Message], *, model: str = ""
) -> list[JsonObject]:
    """`system` and `messages` as the ``messages`` of an OpenAI chat request.

    Images of a tool result follow the results as a user message, for ``tool`` messages take
    none. For a `model` of Anthropic's the signed thinking is added as litellm's
    ``thinking_blocks``; Gemini's call ids, which carry its signatures, stay as they are.
    """
    family = model_family(model)
    written: list[JsonObject] = []
    images: list[_Block] = []
    for message in messages:
        if not isinstance(message, ToolResultMessage):
            _flush_images(written, images)
        match message:
            case UserMessage() | BashExecutionMessage():
                if blocks := _openai_blocks(user_parts(message)):
                    written.append({"role": "user", "content": _plain_if_text(blocks)})
            case AssistantMessage():
                if (reply := _openai_reply(message, family)) is not None:
                    written.append(reply)
            case ToolResultMessage():
                blocks = _openai_blocks(message.content)
                images += [block for block in blocks if block["type"] == "image_url"]
                text = _joined_text(message.content)
                written.append(
                    {
                        "role": "tool",
                        "tool_call_id": _wire_id(message.tool_call_id, family),
                        "content": text if text.strip() else NO_OUTPUT,
                    }
                )
            case _:
                assert_never(message)
    _flush_images(written, images)
    if not written or written[0]["role"] != "user":
        written.insert(0, {"role": "user", "content": CONTINUE})
    if system.strip():
        written.insert(0, {"role": "system", "content": repair_text(system)})
    return written


def messages_to_send(
    system: str, messages: Sequence[Message], *, model: str = ""
) -> list[JsonObject]:
    """`openai_messages`, with `GO_ON` at the end where they end with the model's own words."""
    written = openai_messages(system, messages, model=model)
    if written[-1]["role"] == "assistant":
        written.append({"role": "user", "content": GO_ON})
    return written


def anthropic_payload(system: str, messages: Sequence[Message]) -> JsonObject:
    """`system` and `messages` as ``{"system": ..., "messages": [...]}`` of Anthropic's API.

    Neighbours of one role are merged, for the roles must take turns; the first is the user's.
    """
    turns: list[tuple[Literal["user", "assistant"], list[_Block]]] = []
    for message in messages:
        role: Literal["user", "assistant"] = "user"
        match message:
            case UserMessage() | BashExecutionMessage():
                blocks = _anthropic_blocks(user_parts(message))
            case AssistantMessage():
                role, blocks = "assistant", _anthropic_reply(message)
            case ToolResultMessage():
                blocks = [_anthropic_result(message)]
            case _:
                assert_never(message)
        if not blocks:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    if not turns or turns[0][0] != "user":
        turns.insert(0, ("user", [{"type": "text", "text": CONTINUE}]))
    written: list[JsonValue] = [
        {"role": role, "content": list[JsonValue](blocks)} for role, blocks in turns
    ]
    payload: JsonObject = {"system": repair_text(system)} if system.strip() else {}
    payload["messages"] = written
    return payload


def user_parts(message: UserMessage | BashExecutionMessage) -> tuple[UserContent, ...]:
    """What a message of the person's says; nothing where it is kept from the model."""
    if isinstance(message, BashExecutionMessage):
        if message.exclude_from_context:
            return ()
        return (TextContent(text=_bash_text(message)),)
    if isinstance(message.content, str):
        return (TextContent(text=message.content),)
    return message.content


def _bash_text(message: BashExecutionMessage) -> str:
    lines = [f"Ran `{message.command}`"]
    lines.append(f"```\n{message.output}\n```" if message.output.strip() else NO_OUTPUT)
    if message.cancelled:
        lines.append("(cancelled by the user)")
    elif message.exit_code:
        lines.append(f"Exit code {message.exit_code}")
    if message.truncated and message.full_output_path:
        lines.append(f"(shortened; the whole output is in {message.full_output_path})")
    return "\n".join(lines)


def _openai_reply(message: AssistantMessage, family: ModelFamily) -> JsonObject | None:
    """One reply, or None when nothing of it can be sent (aborted before its first word)."""
    text = repair_text(message.text)
    if family == "anthropic":  # which refuses white space at the end of a reply
        text = text.rstrip()
    calls: list[JsonValue] = [
        {
            "id": _wire_id(call.id, family),
            "type": "function",
            "function": {
                "name": _wire_name(call.name),
                "arguments": json.dumps(repair_json(call.arguments), ensure_ascii=False),
            },
        }
        for call in message.tool_calls
    ]
    if not calls and not text.strip():
        return None
    reply: JsonObject = {"role": "assistant", "content": text if text.strip() else None}
    if calls:
        reply["tool_calls"] = calls
    if family == "anthropic" and (thinking := _signed_thinking(message)):
        reply["thinking_blocks"] = list[JsonValue](thinking)
    elif family == "reasoning" and message.thinking.strip():
        reply["reasoning_content"] = repair_text(message.thinking)
    return reply


def _anthropic_reply(message: AssistantMessage) -> list[_Block]:
    blocks: list[_Block] = []
    signed = _is_claude(message)
    for part in message.content:
        match part:
            case TextContent():
                if (text := repair_text(part.text).rstrip()) != "":
                    blocks.append({"type": "text", "text": text})
            case ThinkingContent():
                if signed:
                    blocks += _thinking_blocks(part)
            case ToolCall():
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": _wire_id(part.id, "anthropic"),
                        "name": _wire_name(part.name),
                        "input": repair_json(part.arguments),
                    }
                )
            case _:
                assert_never(part)
    says_something = any(block["type"] in ("text", "tool_use") for block in blocks)
    return blocks if says_something else []


def _anthropic_result(message: ToolResultMessage) -> _Block:
    content = _anthropic_blocks(message.content) or [{"type": "text", "text": NO_OUTPUT}]
    block: _Block = {
        "type": "tool_result",
        "tool_use_id": _wire_id(message.tool_call_id, "anthropic"),
        "content": list[JsonValue](content),
    }
    if message.is_error:
        block["is_error"] = True
    return block


def _signed_thinking(message: AssistantMessage) -> list[_Block]:
    if not _is_claude(message):
        return []
    thoughts = (part for part in message.content if isinstance(part, ThinkingContent))
    return [block for part in thoughts for block in _thinking_blocks(part)]


def _thinking_blocks(part: ThinkingContent) -> list[_Block]:
    """The block to send back, none where it is unsigned or would have to be repaired.

    The signature covers the text to the byte, so that a repaired one would be refused.
    """
    if not part.signature or repair_text(part.thinking + part.signature) != (
        part.thinking + part.signature
    ):
        return []
    if part.redacted:
        return [{"type": "redacted_thinking", "data": part.signature}]
    return [{"type": "thinking", "thinking": part.thinking, "signature": part.signature}]


def _is_claude(message: AssistantMessage) -> bool:
    """Whether the reply's signatures are Anthropic's: those of others are refused there."""
    return model_family(f"{message.provider}/{message.model}") == "anthropic"


def _openai_blocks(parts: Iterable[UserContent]) -> list[_Block]:
    blocks: list[_Block] = []
    for part in parts:
        if isinstance(part, ImageContent) and _is_sendable(part):
            url = f"data:{part.mime_type};base64,{part.data}"
            blocks.append({"type": "image_url", "image_url": {"url": url}})
        elif (text := _text_of(part)).strip():
            blocks.append({"type": "text", "text": text})
    return blocks


def _anthropic_blocks(parts: Iterable[UserContent]) -> list[_Block]:
    blocks: list[_Block] = []
    for part in parts:
        if isinstance(part, ImageContent) and _is_sendable(part):
            source: JsonObject = {
                "type": "base64",
                "media_type": part.mime_type,
                "data": part.data,
            }
            blocks.append({"type": "image", "source": source})
        elif (text := _text_of(part)).strip():
            blocks.append({"type": "text", "text": text})
    return blocks


def _is_sendable(image: ImageContent) -> bool:
    return image.mime_type in _IMAGE_TYPES and image.data != ""


def _text_of(part: UserContent) -> str:
    if isinstance(part, ImageContent):
        return f"[an image of type {repair_text(part.mime_type) or 'unknown'} that cannot be sent]"
    return repair_text(part.text)


def _joined_text(parts: Iterable[UserContent]) -> str:
    """The text of `parts`, with a word for each image that travels apart or not at all."""
    pieces: list[str] = []
    for part in parts:
        if isinstance(part, ImageContent) and _is_sendable(part):
            pieces.append("[image follows]")
        else:
            pieces.append(_text_of(part))
    return "\n".join(pieces)


def _plain_if_text(blocks: list[_Block]) -> JsonValue:
    """One text as a plain string: some small servers know no other form."""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return list[JsonValue](blocks)


def _flush_images(written: list[JsonObject], images: list[_Block]) -> None:
    if images:
        note: _Block = {"type": "text", "text": "Images of the tool results above:"}
        written.append({"role": "user", "content": [note, *images]})
        images.clear()


def _wire_id(call_id: str, family: ModelFamily) -> str:
    """`call_id`, or a short stand-in where another provider's id would be refused."""
    if family == "gemini" and call_id and call_id.isascii():
        return call_id
    if re.fullmatch(rf"[A-Za-z0-9_-]{{1,{_MAX_ID_CHARS}}}", call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[:24]}"


def _wire_name(name: str) -> str:
    """`name` in the alphabet of tool names: a model may have called a tool that is none."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_MAX_NAME_CHARS] or "unknown"
