"""Reading litellm's stream objects: deltas, finish reasons and usage as values of ours."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agent_tui.messages import Cost, Usage
from agent_tui.providers.base import Chunk, TextChunk, ThinkingChunk, ToolCallChunk


@dataclass(slots=True)
class _OpenCall:
    index: int
    id: str
    pieces: list[str] = field(default_factory=list[str])


class CallSplitter:
    """Gives every call an index of its own.

    Some servers send several calls under one index (Gemini's compatible endpoint, old
    llama.cpp); taken as one, their arguments would run together. A new call is known by a new
    id with a name or, where no ids are sent, by a name after complete arguments.
    """

    def __init__(self) -> None:
        self._open: dict[int, _OpenCall] = {}
        self._count = 0

    def piece(self, server_index: int, call_id: str, name: str, arguments: str) -> ToolCallChunk:
        """The chunk for one piece of a call as the server sent it; missing parts are empty."""
        call = self._open.get(server_index)
        if call is None or _starts_another(call, call_id, name):
            call = _OpenCall(self._count, call_id)
            self._open[server_index] = call
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


class Choice(Protocol):
    """One choice of a stream part; there is never more than one."""

    delta: object
    finish_reason: str | None


class Part(Protocol):
    """One part of a stream; it may have a ``usage``."""

    choices: Sequence[Choice]


class ReplyStream(Protocol):
    """What litellm's ``acompletion(stream=True)`` returns.

    ``received_finish_reason`` and ``intermittent_finish_reason`` are what the provider sent;
    the `Part` that litellm makes up at the end says "stop" in any case. ``chunks`` are the
    parts as they came, usage included.
    """

    received_finish_reason: str | None
    intermittent_finish_reason: str | None
    chunks: Sequence[object]

    def __aiter__(self) -> AsyncIterator[Part]:
        """The parts, as they come."""
        ...

    async def __anext__(self) -> Part:
        """The next part."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


def chunks_of(delta: object, calls: CallSplitter) -> Iterator[Chunk]:
    """The chunks of one delta.

    litellm repeats the whole thinking text beside its signature, so the text is taken from
    ``reasoning_content`` alone and only signatures from ``thinking_blocks``.
    """
    if text := getattr(delta, "reasoning_content", None):
        yield ThinkingChunk(text)
    for block in getattr(delta, "thinking_blocks", None) or ():
        if block.get("type") == "redacted_thinking":
            yield ThinkingChunk("", block.get("data") or "", redacted=True)
        elif signature := block.get("signature"):
            yield ThinkingChunk("", signature)
    if text := getattr(delta, "content", None):
        yield TextChunk(text)
    for call in getattr(delta, "tool_calls", None) or ():
        function = call.function
        yield calls.piece(call.index, call.id or "", function.name or "", function.arguments or "")


def finish_reason(reason: str) -> Literal["stop", "length", "toolUse", "contentFilter"]:
    """OpenAI's finish reason, into which litellm translates all others, as ours."""
    match reason:
        case "length":
            return "length"
        case "tool_calls" | "function_call":
            return "toolUse"
        case "content_filter":
            return "contentFilter"
        case _:
            return "stop"


def was_finished(stream: ReplyStream) -> bool:
    """Whether the provider itself said why it stopped."""
    return bool(stream.received_finish_reason or stream.intermittent_finish_reason)


def was_usage_sent(stream: ReplyStream) -> bool:
    """Whether the provider itself sent usage."""
    return any(getattr(chunk, "usage", None) for chunk in stream.chunks)


def usage_of(usage: object, prices: Mapping[str, object], *, is_estimate: bool) -> Usage:
    """A usage object of litellm's as ours; `prices` in dollars per token, 0 where unknown."""
    details = getattr(usage, "prompt_tokens_details", None)
    read = _count(usage, "cache_read_input_tokens") or _count(details, "cached_tokens")
    write = _count(usage, "cache_creation_input_tokens") or _count(details, "cache_creation_tokens")
    fresh = max(_count(usage, "prompt_tokens") - read - write, 0)
    output = _count(usage, "completion_tokens")
    input_price = _price(prices, "input_cost_per_token", 0.0)
    cost = Cost(
        input=fresh * input_price,
        output=output * _price(prices, "output_cost_per_token", 0.0),
        cache_read=read * _price(prices, "cache_read_input_token_cost", input_price),
        cache_write=write * _price(prices, "cache_creation_input_token_cost", input_price),
    )
    total = cost.input + cost.output + cost.cache_read + cost.cache_write
    return Usage(
        input=fresh,
        output=output,
        cache_read=read,
        cache_write=write,
        total_tokens=fresh + read + write + output,
        cost=cost.model_copy(update={"total": total}),
        is_estimate=is_estimate,
    )


def _count(holder: object, name: str) -> int:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) else 0


def _price(prices: Mapping[str, object], name: str, default: float) -> float:
    value = prices.get(name)
    return float(value) if isinstance(value, int | float) else default
