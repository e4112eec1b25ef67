"""The rules of the OpenAI and the Anthropic chat formats, as strictly as the services read them.

`openai_problems` and `anthropic_problems` return one line for each rule a request breaks;
an empty list means that the service would take it.
"""

import json
import re
from typing import Any

_IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ANTHROPIC_ID = re.compile(r"[A-Za-z0-9_-]+")
_OPENAI_KEYS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "thinking_blocks", "reasoning_content"},
    "tool": {"role", "content", "tool_call_id"},
}


def openai_problems(messages: Any, *, max_id_chars: int = 40) -> list[str]:
    """What is wrong with the ``messages`` of a chat request."""
    problems = _encoding_problems(messages)
    if not isinstance(messages, list) or not messages:
        return [*problems, "messages: not a list with at least one message"]
    seen_ids: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        role = message.get("role")
        if role not in _OPENAI_KEYS:
            problems.append(f"{where}: role {role!r}")
            continue
        if extra := set(message) - _OPENAI_KEYS[role]:
            problems.append(f"{where}: {role} message with {sorted(extra)}")
        if waiting and role != "tool":
            problems.append(f"{where}: calls {waiting} have no result before it")
            waiting = []
        if role == "system" and at > 0:
            problems.append(f"{where}: system message after the first")
        if role == "tool":
            call_id = message.get("tool_call_id")
            if call_id not in waiting:
                problems.append(f"{where}: result of {call_id!r}, which is not waited for")
            else:
                waiting.remove(call_id)
            problems += _text_problems(where, message.get("content"))
        elif role == "assistant":
            calls = message.get("tool_calls")
            problems += _openai_reply_problems(where, message)
            for call in calls or []:
                problems += _openai_call_problems(where, call, seen_ids, max_id_chars)
                waiting.append(call.get("id"))
        else:
            problems += _openai_content_problems(where, message.get("content"))
    if waiting:
        problems.append(f"end: calls {waiting} have no result")
    first = next((m.get("role") for m in messages if m.get("role") != "system"), None)
    if first != "user":
        problems.append(f"the first message is of role {first!r}, not the user's")
    return problems


def anthropic_problems(payload: Any) -> list[str]:
    """What is wrong with a ``{"system": ..., "messages": [...]}`` request."""
    problems = _encoding_problems(payload)
    if extra := set(payload) - {"system", "messages"}:
        problems.append(f"payload has {sorted(extra)}")
    if "system" in payload:
        problems += _text_problems("system", payload["system"])
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*problems, "messages: not a list with at least one message"]
    seen_ids: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        expected = "user" if at % 2 == 0 else "assistant"
        if message.get("role") != expected or set(message) != {"role", "content"}:
            problems.append(f"{where}: {message.get('role')!r} where {expected!r} is due")
        blocks = message.get("content")
        if not isinstance(blocks, list) or not blocks:
            problems.append(f"{where}: no content")
            continue
        if message.get("role") == "user":
            problems += _anthropic_user_problems(where, blocks, waiting)
            waiting = []
        else:
            problems += _anthropic_reply_problems(where, blocks, seen_ids)
            waiting = [b.get("id") for b in blocks if b.get("type") == "tool_use"]
    if waiting:
        problems.append(f"end: calls {waiting} have no result")
    return problems


def _encoding_problems(value: Any) -> list[str]:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (UnicodeEncodeError, ValueError, TypeError) as error:
        return [f"cannot be sent: {error}"]
    return []


def _text_problems(where: str, text: Any) -> list[str]:
    if not isinstance(text, str):
        return [f"{where}: text is a {type(text).__name__}"]
    return [] if text.strip() else [f"{where}: empty text"]


def _openai_content_problems(where: str, content: Any) -> list[str]:
    if not isinstance(content, list):
        return _text_problems(where, content)
    problems = [] if content else [f"{where}: no content"]
    for part in content:
        kind = part.get("type")
        if kind == "text" and set(part) == {"type", "text"}:
            problems += _text_problems(where, part["text"])
        elif kind == "image_url" and set(part) == {"type", "image_url"}:
            url = part["image_url"].get("url", "")
            if not re.match(rf"data:({'|'.join(_IMAGE_TYPES)});base64,.", url):
                problems.append(f"{where}: image url {url[:40]!r}")
        else:
            problems.append(f"{where}: content part {kind!r} with {sorted(part)}")
    return problems


def _openai_reply_problems(where: str, message: dict[str, Any]) -> list[str]:
    problems: list[str] = []
    if "tool_calls" in message and not message["tool_calls"]:
        problems.append(f"{where}: tool_calls is there and empty")
    if message.get("content") is None:
        if not message.get("tool_calls"):
            problems.append(f"{where}: neither content nor calls")
    else:
        problems += _text_problems(where, message["content"])
    for block in message.get("thinking_blocks", []):
        problems += _thinking_problems(where, block)
    return problems


def _openai_call_problems(
    where: str, call: dict[str, Any], seen_ids: set[str], max_id_chars: int
) -> list[str]:
    problems: list[str] = []
    call_id, function = call.get("id"), call.get("function", {})
    if not isinstance(call_id, str) or not 0 < len(call_id) <= max_id_chars:
        problems.append(f"{where}: call id {call_id!r}")
    elif call_id in seen_ids:
        problems.append(f"{where}: call id {call_id!r} is used twice")
    else:
        seen_ids.add(call_id)
    if call.get("type") != "function" or set(call) != {"id", "type", "function"}:
        problems.append(f"{where}: call with {sorted(call)}")
    if not _NAME.fullmatch(str(function.get("name"))):
        problems.append(f"{where}: tool name {function.get('name')!r}")
    try:
        if not isinstance(json.loads(function.get("arguments")), dict):
            problems.append(f"{where}: arguments are not an object")
    except (TypeError, ValueError):
        problems.append(f"{where}: arguments are not JSON text")
    return problems


def _anthropic_user_problems(where: str, blocks: list[Any], waiting: list[str]) -> list[str]:
    problems: list[str] = []
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if blocks[: len(results)] != results:
        problems.append(f"{where}: tool results do not come first")
    answered = [block.get("tool_use_id") for block in results]
    if sorted(map(str, answered)) != sorted(map(str, waiting)):
        problems.append(f"{where}: results of {answered} where {waiting} wait")
    for block in blocks:
        if block.get("type") == "tool_result":
            if set(block) - {"type", "tool_use_id", "content", "is_error"}:
                problems.append(f"{where}: tool_result with {sorted(block)}")
            if not block.get("content"):
                problems.append(f"{where}: tool_result without content")
            for part in block.get("content", []):
                problems += _anthropic_part_problems(where, part)
        else:
            problems += _anthropic_part_problems(where, block)
    return problems


def _anthropic_part_problems(where: str, part: dict[str, Any]) -> list[str]:
    if part.get("type") == "text" and set(part) == {"type", "text"}:
        return _text_problems(where, part["text"])
    if part.get("type") == "image" and set(part) == {"type", "source"}:
        source = part["source"]
        good = source.get("type") == "base64" and source.get("media_type") in _IMAGE_TYPES
        return [] if good and source.get("data") else [f"{where}: image source"]
    return [f"{where}: content block {part.get('type')!r} with {sorted(part)}"]


def _anthropic_reply_problems(where: str, blocks: list[Any], seen_ids: set[str]) -> list[str]:
    problems: list[str] = []
    for block in blocks:
        match block.get("type"):
            case "text":
                problems += _text_problems(where, block.get("text"))
            case "thinking" | "redacted_thinking":
                problems += _thinking_problems(where, block)
            case "tool_use":
                problems += _tool_use_problems(where, block, seen_ids)
            case kind:
                problems.append(f"{where}: content block {kind!r}")
    if blocks[-1].get("type") == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
        problems.append(f"{where}: ends in white space")
    return problems


def _tool_use_problems(where: str, block: dict[str, Any], seen_ids: set[str]) -> list[str]:
    problems: list[str] = []
    if not _ANTHROPIC_ID.fullmatch(str(block.get("id"))):
        problems.append(f"{where}: call id {block.get('id')!r}")
    if block.get("id") in seen_ids:
        problems.append(f"{where}: call id {block.get('id')!r} is used twice")
    seen_ids.add(str(block.get("id")))
    if not _NAME.fullmatch(str(block.get("name"))):
        problems.append(f"{where}: tool name {block.get('name')!r}")
    if not isinstance(block.get("input"), dict):
        problems.append(f"{where}: input is not an object")
    return problems


def _thinking_problems(where: str, block: dict[str, Any]) -> list[str]:
    if block.get("type") == "redacted_thinking":
        return [] if block.get("data") else [f"{where}: redacted thinking without data"]
    good = isinstance(block.get("thinking"), str) and block.get("signature")
    return [] if good else [f"{where}: unsigned thinking"]
