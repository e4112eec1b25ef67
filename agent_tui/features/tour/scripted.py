"""A provider that plays a script: no model, no network. Used by ``--demo`` and by tests."""

import asyncio
import json
import math
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from agent_tui.messages import JsonObject, ToolCall, Usage
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    FinishReason,
    ModelRef,
    ModelRequest,
    ProviderError,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)

_CHUNK_CHARS = 12
_MOST_CHUNKS = 500
"""Of one text: a longer one comes in larger pieces. Models don't write a megabyte word by word."""
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request.

    Args:
        text: Visible text, sent in small pieces.
        thinking: Reasoning text, sent first.
        tool_calls: Calls, sent after the text; their arguments come in pieces too.
        error: Raised after everything above was sent, before the finish reason.
        usage: Sent before the finish reason; None sends an estimate from the lengths.
        finish: The finish reason; None derives it.
        cut: End without a finish reason, as a broken connection does.
        delay_s_per_chunk: Pause before each piece; 0 still lets other tasks run.
        gate: Awaited after the text and before the rest, to pause a reply mid-stream.
    """

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    error: ProviderError | None = None
    usage: Usage | None = None
    finish: FinishReason | None = None
    cut: bool = False
    delay_s_per_chunk: float = 0.0
    gate: asyncio.Event | None = None


Script: TypeAlias = Iterable[Reply] | Callable[[ModelRequest], Reply]


def call(call_id: str, name: str, /, **arguments: object) -> ToolCall:
    """Create a tool call concisely: ``call("c1", "read", path="a.py")``."""
    checked: JsonObject = ToolCall.model_validate(
        {"id": call_id, "name": name, "arguments": arguments}
    ).arguments
    return ToolCall(id=call_id, name=name, arguments=checked)


class ScriptedProvider:
    """Answers each request with the next reply of a script, or with a function's result.

    Attributes:
        requests: Every request so far, in order.
        closed_streams: How many streams were closed before they ended.
    """

    def __init__(self, script: Script) -> None:
        self.requests: list[ModelRequest] = []
        self.closed_streams = 0
        if callable(script):
            self._answer: Callable[[ModelRequest], Reply] = script
            self._remaining: deque[Reply] = deque()
        else:
            self._remaining = deque(script)
            self._answer = self._next_reply

    @property
    def remaining(self) -> int:
        """How many replies of a script given as a sequence are left."""
        return len(self._remaining)

    async def warm(self, model: ModelRef) -> None:
        """Do nothing: there is nothing to prepare."""

    async def aclose(self) -> None:
        """Do nothing: nothing was started."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`.

        Raises:
            ProviderError: The reply says so, is cut, or the script is over.
        """
        self.requests.append(request)
        reply = self._answer(request)
        is_over = False
        try:
            for chunk in _content(reply):
                await asyncio.sleep(reply.delay_s_per_chunk)
                yield chunk
            if reply.gate is not None:
                await reply.gate.wait()
            for chunk in _call_pieces(reply.tool_calls):
                await asyncio.sleep(reply.delay_s_per_chunk)
                yield chunk
            is_over = True
            if reply.error is not None:
                raise reply.error
            if reply.cut:
                raise ProviderError("interrupted", "The scripted reply was cut off.", "Try again.")
            yield UsageChunk(reply.usage or _estimate_usage(request, reply))
            yield FinishChunk(reply.finish or ("toolUse" if reply.tool_calls else "stop"))
        finally:
            if not is_over:
                self.closed_streams += 1

    def _next_reply(self, request: ModelRequest) -> Reply:
        if not self._remaining:
            raise ProviderError(
                "bad_request",
                f"The script for {request.model.name} ended after {len(self.requests)} requests.",
                "Add another reply to it.",
            )
        return self._remaining.popleft()


def _content(reply: Reply) -> Iterator[Chunk]:
    for piece in _pieces(reply.thinking):
        yield ThinkingChunk(piece)
    for piece in _pieces(reply.text):
        yield TextChunk(piece)


def _call_pieces(calls: Iterable[ToolCall]) -> Iterator[Chunk]:
    for index, tool_call in enumerate(calls):
        yield ToolCallChunk(index, tool_call.id, tool_call.name, "")
        for piece in _pieces(json.dumps(tool_call.arguments)):
            yield ToolCallChunk(index, "", "", piece)


def _pieces(text: str) -> Iterator[str]:
    size = max(_CHUNK_CHARS, math.ceil(len(text) / _MOST_CHUNKS))
    return (text[start : start + size] for start in range(0, len(text), size))


def _estimate_usage(request: ModelRequest, reply: Reply) -> Usage:
    """Token counts by length, so that the context bar has something to show."""
    sent = len(request.system) + sum(len(message.model_dump_json()) for message in request.messages)
    sent += sum(len(spec.model_dump_json()) for spec in request.tools)
    written = len(reply.text) + len(reply.thinking)
    written += sum(len(tool_call.model_dump_json()) for tool_call in reply.tool_calls)
    input_tokens, output_tokens = sent // _CHARS_PER_TOKEN, written // _CHARS_PER_TOKEN
    return Usage(
        input=input_tokens,
        output=output_tokens,
        total_tokens=input_tokens + output_tokens,
        is_estimate=True,
    )
