"""Reading litellm's stream objects: deltas, finish reasons and usage as values of ours."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent_tui.providers.base import Chunk, TextChunk, ThinkingChunk, ToolCallChunk
from agent_tui.providers.wires.litellm_module import ReplyStream
from agent_tui.providers.wires.usage import TokenCounts

_NO_SIGNATURE = "mistral"
"""What litellm makes up for Mistral, whose thinking is not sealed."""


@dataclass(slots=True)
class _OpenCall:
    index: int
    id: str
    pieces: list[str] = field(default_factory=list[str])


class CallSplitter:
    """Gives every call an index of its own.

    Some servers send several calls under one index (Gemini's compatible endpoint, old
    llama.cpp); taken as one, their arguments would run together. A new call is known by a new
    id with a name or, where no ids are sent, by a name after complete arguments; a piece with
    the id of one that came before belongs to it.
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


class Reasoning:
    """The reasoning of one reply: its text, and what it must be given back with.

    litellm repeats the whole thinking text beside its signature, so the text is taken from
    ``reasoning_content`` alone and only signatures from ``thinking_blocks``.
    """

    def __init__(self) -> None:
        self._details: list[dict[str, object]] = []

    def chunks(self, delta: object) -> Iterator[Chunk]:
        """What one delta adds."""
        details = [one for one in getattr(delta, "reasoning_details", None) or ()]
        self._details += details
        text = getattr(delta, "reasoning_content", None)
        text = text or "".join(str(one.get("text") or "") for one in details)
        if text or details:
            yield ThinkingChunk(text)
        for block in getattr(delta, "thinking_blocks", None) or ():
            if block.get("type") == "redacted_thinking":
                yield ThinkingChunk("", block.get("data") or "", redacted=True)
            elif (signature := block.get("signature")) and signature != _NO_SIGNATURE:
                yield ThinkingChunk("", signature)

    def ending(self) -> Iterator[Chunk]:
        """The details of the whole reply, those that came in pieces put together."""
        if self._details:
            yield sealed_details(self._details)


def sealed_details(pieces: Iterable[Mapping[str, object]]) -> ThinkingChunk:
    """The ``reasoning_details`` of a reply, put together as what goes back with it."""
    return ThinkingChunk("", json.dumps(_joined_details(pieces), separators=(",", ":")))


def _joined_details(details: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Pieces of one detail, which share type and index, as one: text joined, the rest newest."""
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


def chunks_of(delta: object, calls: CallSplitter) -> Iterator[Chunk]:
    """The chunks of one delta's text and calls."""
    if text := getattr(delta, "content", None):
        yield TextChunk(text)
    for call in getattr(delta, "tool_calls", None) or ():
        function = call.function
        yield calls.piece(call.index, call.id or "", function.name or "", function.arguments or "")


def finish_reason(reason: str) -> Literal["stop", "length", "toolUse", "contentFilter"]:
    """OpenAI's finish reason as ours, with what Mistral and z.ai say in its place."""
    match reason:
        case "length" | "max_tokens" | "model_length" | "model_context_window_exceeded":
            return "length"
        case "tool_calls" | "function_call":
            return "toolUse"
        case "content_filter" | "sensitive":
            return "contentFilter"
        case _:
            return "stop"


def was_finished(stream: ReplyStream) -> bool:
    """Whether the provider itself said why it stopped."""
    return bool(stream.received_finish_reason or stream.intermittent_finish_reason)


def was_usage_sent(stream: ReplyStream) -> bool:
    """Whether the provider itself sent usage."""
    return any(getattr(chunk, "usage", None) for chunk in stream.chunks)


def counts_of(usage: object) -> TokenCounts:
    """The counts of a usage object of litellm's."""
    details = getattr(usage, "prompt_tokens_details", None)
    read = _count(usage, "cache_read_input_tokens") or _count(details, "cached_tokens")
    write = _count(usage, "cache_creation_input_tokens") or _count(details, "cache_creation_tokens")
    return TokenCounts(
        fresh=max(_count(usage, "prompt_tokens") - read - write, 0),
        output=_count(usage, "completion_tokens"),
        cache_read=read,
        cache_write=write,
    )


def _count(holder: object, name: str) -> int:
    value = getattr(holder, name, None)
    return max(value, 0) if isinstance(value, int) else 0
