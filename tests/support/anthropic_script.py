"""The replies of `openai_script` in the events of Anthropic's messages, and its refusals."""

import json
from typing import Any

from tests.support.openai_script import Call, Failure, Reply, words

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def anthropic_failure(status: int, kind: str, message: str, **headers: str) -> Failure:
    """A failure in Anthropic's JSON; `headers` with underscores for dashes."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Failure(status, json.dumps(body), named)


def opening_events(reply: Reply) -> list[str]:
    """The events of a reply up to its ending."""
    prompt, _ = reply.usage or (0, 0)
    usage = {
        "input_tokens": prompt - reply.cached_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message: dict[str, Any] = {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": "claude-scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    if reply.usage is not None:
        message["usage"] = usage
    blocks: list[list[dict[str, Any]]] = []
    if reply.thinking:
        blocks.append(_thinking_block(len(blocks), reply.thinking))
    if reply.text:
        blocks.append(_text_block(len(blocks), reply.text))
    blocks += [
        _call_block(len(blocks) + number, number, call)
        for number, call in enumerate(reply.tool_calls)
    ]
    if blocks and reply.ending not in ("whole", "hold"):
        blocks[-1].pop()  # broken off inside its last block
    events = [{"type": "message_start", "message": message}, {"type": "ping"}]
    events += [event for block in blocks for event in block]
    return [json.dumps(event) for event in events] + list(reply.raw_events)


def closing_events(reply: Reply) -> list[str]:
    """Stop reason, usage and ``message_stop``, as far as the reply has them."""
    events: list[dict[str, Any]] = []
    if reply.finish is None:
        reason = "tool_use" if reply.tool_calls else "end_turn"
    else:
        reason = _STOP_REASONS.get(reply.finish, reply.finish)
    if reason:
        delta = {"stop_reason": reason, "stop_sequence": None}
        event: dict[str, Any] = {"type": "message_delta", "delta": delta}
        if reply.usage is not None:
            event["usage"] = {"output_tokens": reply.usage[1]}
        events.append(event)
    if reply.done:
        events.append({"type": "message_stop"})
    return [json.dumps(event) for event in events]


def text_event(text: str) -> str:
    """One more piece of text."""
    delta = {"type": "text_delta", "text": text}
    return json.dumps({"type": "content_block_delta", "index": 0, "delta": delta})


def error_event(text: str) -> str:
    """What is sent when something goes wrong after the headers are gone."""
    return json.dumps({"type": "error", "error": {"type": "api_error", "message": text}})


def _thinking_block(index: int, thinking: str) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [
        {"type": "thinking_delta", "thinking": piece} for piece in words(thinking)
    ]
    deltas.append({"type": "signature_delta", "signature": "c2lnbmVk"})
    return _block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)


def _text_block(index: int, text: str | tuple[str, ...]) -> list[dict[str, Any]]:
    pieces = words(text) if isinstance(text, str) else text
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return _block(index, {"type": "text", "text": ""}, deltas)


def _call_block(index: int, number: int, call: Call) -> list[dict[str, Any]]:
    head = {"type": "tool_use", "id": call.id or f"toolu_{number}", "name": call.name, "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in call.written_pieces]
    return _block(index if call.index is None else call.index, head, deltas)


def _block(index: int, head: dict[str, Any], deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": head},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]
