"""Common parts of replies in the chat format: calls, signed reasoning, finish reasons."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent_tui.providers.base import ThinkingChunk, ToolCallChunk


@dataclass(slots=True)
class _OpenCall:
    index: int
    id: str
    pieces: list[str] = field(default_factory=list[str])


class CallSplitter:
    """Gives every call a separate index.

    Some servers send several calls under one index (Gemini's compatible endpoint, old llama.cpp);
    taken as one, their arguments would run together. A new id with a name marks a new call or, if
    no ids are sent, a name after complete arguments; a piece with an earlier call's id belongs to
    that call.
    """

    def __init__(self) -> None:
        self._open: dict[int, _OpenCall] = {}
        self._by_id: dict[tuple[int, str], _OpenCall] = {}
        self._count = 0

    def piece(self, server_index: int, call_id: str, name: str, arguments: str) -> ToolCallChunk:
        """The chunk for one piece of a call as the server sent it; missing parts are empty."""
        call = self._open.get(server_index)
        if call_id and not name:
            call = self._by_id.get((server_index, call_id), call)
        if call is None or _starts_another(call, call_id, name):
            call = _OpenCall(self._count, call_id)
            self._open[server_index] = self._by_id[server_index, call_id] = call
            self._count += 1
            first = ToolCallChunk(call.index, call_id, name, arguments)
        else:
            first = ToolCallChunk(call.index, "", "" if call.pieces else name, arguments)
        if arguments:
            call.pieces.append(arguments)
        return first


def _starts_another(call: _OpenCall, call_id: str, name: str) -> bool:
    if not name:
        return False
    if call_id:
        return call_id != call.id
    return _is_complete("".join(call.pieces))


def _is_complete(arguments: str) -> bool:
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True


def sealed_details(pieces: Iterable[Mapping[str, object]]) -> ThinkingChunk:
    """The ``reasoning_details`` of a reply, joined into the signature to send back."""
    return ThinkingChunk("", json.dumps(_joined_details(pieces), separators=(",", ":")))


def _joined_details(details: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Join pieces of one detail (same type and index): text concatenated, the rest newest."""
    joined: list[dict[str, object]] = []
    for piece in details:
        last = joined[-1] if joined else {}
        is_next = all(last.get(name) == piece.get(name) for name in ("type", "index"))
        if not joined or not is_next or piece.get("type") == "reasoning.encrypted":
            joined.append(dict(piece))
            continue
        for name, value in piece.items():
            before = last.get(name)
            if name in ("text", "summary") and isinstance(before, str) and isinstance(value, str):
                last[name] = before + value
            elif value is not None:
                last[name] = value
    return joined


def finish_reason(reason: str) -> Literal["stop", "length", "toolUse", "contentFilter"]:
    """OpenAI's finish reason as ours, including the variants of Mistral and z.ai."""
    match reason:
        case "length" | "max_tokens" | "model_length" | "model_context_window_exceeded":
            return "length"
        case "tool_calls" | "function_call":
            return "toolUse"
        case "content_filter" | "sensitive":
            return "contentFilter"
        case _:
            return "stop"
