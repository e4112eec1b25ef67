"""Independent readings of recorded streams: what a strict provider says it has given.

Each reader returns the reply as its protocol demands it back, with the tokens that were counted.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.recordings import Recording


@dataclass
class Given:
    """A reply: its items in order, as they must be sent back, and input and output tokens."""

    items: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    thinking: str = ""
    text: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


def anthropic_reply(recorded: Recording) -> Given:
    """A reply of the Messages API; blocks of tools that run at the server are left out."""
    given = Given()
    blocks: dict[int, dict[str, Any]] = {}
    for event in recorded.events:
        match event["type"]:
            case "message_start":
                _count_anthropic(given, event["message"]["usage"])
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                block, delta = blocks[event["index"]], event["delta"]
                for name in ("text", "thinking", "signature", "partial_json"):
                    if name in delta:
                        block[name] = block.get(name, "") + delta[name]
            case "message_delta":
                _count_anthropic(given, event["usage"])
            case _:
                pass
    for _, block in sorted(blocks.items()):
        _take_anthropic(given, block)
    return given


def _take_anthropic(given: Given, block: dict[str, Any]) -> None:
    match block["type"]:
        case "text" if block["text"].strip():
            given.text += block["text"]
            if given.items and given.items[-1]["type"] == "text":
                given.items[-1]["text"] += block["text"]
            else:
                given.items.append({"type": "text", "text": block["text"]})
        case "thinking":
            given.thinking += block["thinking"]
            given.items.append({n: block[n] for n in ("type", "thinking", "signature")})
        case "redacted_thinking":
            given.items.append({"type": block["type"], "data": block["data"]})
        case "tool_use":
            arguments = json.loads(block.get("partial_json") or "{}")
            given.items.append({n: block[n] for n in ("type", "id", "name")} | {"input": arguments})
        case _:
            pass


def _count_anthropic(given: Given, usage: dict[str, Any]) -> None:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    if usage.get("input_tokens") is not None:
        given.input_tokens = sum(usage.get(name) or 0 for name in names)
    given.output_tokens = usage["output_tokens"]


def responses_reply(recorded: Recording) -> Given:
    """A reply of the Responses API; items of tools that run at the server are left out."""
    given = Given()
    done = {
        e["output_index"]: e["item"] for e in recorded.events if "output_item.done" in e["type"]
    }
    for _, item in sorted(done.items()):
        match item["type"]:
            case "reasoning":
                parts = item.get("summary") or item.get("content") or []
                given.thinking += "\n\n".join(part["text"] for part in parts)
                if item.get("encrypted_content") or item.get("content"):
                    given.items.append(item)
            case "message":
                given.text += "".join(part["text"] for part in item["content"])
                given.items.append(item)
            case "function_call":
                given.items.append(item)
            case _:
                pass
    usage = recorded.events[-1]["response"]["usage"]
    given.input_tokens, given.output_tokens = usage["input_tokens"], usage["output_tokens"]
    return given


def gemini_reply(recorded: Recording) -> Given:
    """A reply of Gemini's; neighbouring texts without a signature are one."""
    given = Given()
    usage: dict[str, Any] = {}
    for event in recorded.events:
        usage |= event.get("usageMetadata", {})
        for candidate in event.get("candidates", []):
            for part in candidate["content"].get("parts", []):
                _take_gemini(given, part)
    given.input_tokens = usage["promptTokenCount"] + usage.get("toolUsePromptTokenCount", 0)
    given.output_tokens = usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
    return given


def _take_gemini(given: Given, part: dict[str, Any]) -> None:
    kept = {n: part[n] for n in ("text", "thoughtSignature", "functionCall") if n in part}
    given.text += part.get("text", "")
    last = given.items[-1] if given.items else {}
    if "text" in kept and "thoughtSignature" not in kept:
        if set(last) == {"text"}:
            last["text"] += kept["text"]
        elif kept["text"]:
            given.items.append(kept)
    elif "text" in kept or "functionCall" in kept:
        given.items.append(kept)


def chat_reply(recorded: Recording) -> Given:
    """A reply in the chat format, whatever the service calls its reasoning."""
    given = Given()
    calls: dict[int, dict[str, Any]] = {}
    for event in recorded.events:
        usage = event.get("usage") or event.get("x_groq", {}).get("usage")
        if usage:
            given.input_tokens = usage["prompt_tokens"]
            given.output_tokens = usage["completion_tokens"]
        for choice in event.get("choices", []):
            delta = choice["delta"]
            content = delta.get("content") or ""
            if isinstance(content, list):
                for part in content:
                    given.thinking += "".join(inner["text"] for inner in part.get("thinking", []))
                    given.text += part.get("text", "")
            else:
                given.text += content
            details = "".join(one.get("text", "") for one in delta.get("reasoning_details") or [])
            said = delta.get("reasoning_content") or delta.get("reasoning")
            given.thinking += said or details
            for call in delta.get("tool_calls") or []:
                known = calls.setdefault(call["index"], {"arguments": ""})
                known["id"] = known.get("id") or call.get("id")
                known["name"] = known.get("name") or call["function"].get("name")
                known["arguments"] += call["function"].get("arguments") or ""
    given.items = [calls[index] for index in sorted(calls)]
    if given.text.startswith("<think>"):
        thought, _, text = given.text.removeprefix("<think>").partition("</think>")
        given.thinking, given.text = given.thinking + thought, text.lstrip()
    return given


def bedrock_reply(recorded: Recording) -> Given:
    """A reply of Bedrock's ``ConverseStream``."""
    given = Given()
    blocks: dict[int, dict[str, Any]] = {}
    for kind, event in _frames(recorded.body):
        if kind == "metadata":
            given.input_tokens = event["usage"]["inputTokens"]
            given.output_tokens = event["usage"]["outputTokens"]
        if kind != "contentBlockDelta":
            continue
        block, delta = blocks.setdefault(event["contentBlockIndex"], {}), event["delta"]
        if "text" in delta:
            block["text"] = block.get("text", "") + delta["text"]
        else:
            inner = block.setdefault("reasoningContent", {"reasoningText": {}})["reasoningText"]
            for name, value in delta["reasoningContent"].items():
                inner[name] = inner.get(name, "") + value
    for _, block in sorted(blocks.items()):
        given.text += block.get("text", "")
        given.thinking += block.get("reasoningContent", {}).get("reasoningText", {}).get("text", "")
        given.items.append(block)
    return given


def _frames(raw: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and payload of each frame; the kind is the value of the first header."""
    while raw:
        total, headers_size = struct.unpack(">II", raw[:8])
        headers = raw[12 : 12 + headers_size]
        at = headers.index(b":event-type") + len(b":event-type") + 1
        (size,) = struct.unpack(">H", headers[at : at + 2])
        kind = headers[at + 2 : at + 2 + size].decode()
        yield kind, json.loads(raw[12 + headers_size : total - 4])
        raw = raw[total:]
