"""One request to a model, one complete reply."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias, assert_never

from agent_tui.durations import format_duration, format_remaining
from agent_tui.errors import AgentTuiError
from agent_tui.messages import Cost, Message, Usage, UserMessage
from agent_tui.providers.base import (
    Chunk,
    FaultKind,
    FinishChunk,
    FinishReason,
    ModelRef,
    ModelRequest,
    NoticeChunk,
    Provider,
    ProviderError,
    RestartChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.providers.limits import Sleep, retry_delay_s
from agent_tui.providers.silence import WaitTeller
from agent_tui.text import repair_text

OnProgress: TypeAlias = Callable[[str, int], None]
"""Called with the phase ("choosing what to keep") and the characters received so far."""

OnUsage: TypeAlias = Callable[[Usage], None]
"""Called with the usage of a request as soon as it is known, even if the rest fails."""

_MOST_RETRIES = 2
_PASSING_FAULTS: Mapping[FaultKind, str] = MappingProxyType(
    {
        "rate_limit": "rate limited",
        "overloaded": "overloaded",
        "server": "server error",
        "network": "not reachable",
        "interrupted": "connection lost",
    }
)
"""Errors worth waiting for, in words. For others, trying the next model or none is quicker."""


def ignore_usage(usage: Usage) -> None:
    """An `OnUsage` that ignores the usage."""


def unseen(phase: str, received_chars: int) -> None:
    """An `OnProgress` that shows nothing."""


class RequestTracker:
    """Reports the progress of all requests of one task, and adds up their usage.

    Failed requests count too. `total` is None before the first reply that states its usage.
    """

    def __init__(self, on_progress: OnProgress, on_usage: OnUsage) -> None:
        self._on_progress = on_progress
        self._on_usage = on_usage
        self._received_chars = 0
        self.total: Usage | None = None

    def begin(self) -> None:
        """Start counting received characters at 0 again for another text."""
        self._received_chars = 0

    def tell(self, phase: str, received: str = "") -> None:
        """Report `phase`, after counting `received`."""
        self._received_chars += len(received)
        self._on_progress(phase, self._received_chars)

    def add(self, usage: Usage) -> None:
        """Add the usage of one more request."""
        self.total = usage if self.total is None else add_usage(self.total, usage)
        self._on_usage(usage)


@dataclass(slots=True)
class RawToolCall:
    """A tool call as received: `arguments_json` may be any text."""

    id: str
    name: str
    arguments_json: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The reply to one request."""

    text: str
    finish: FinishReason
    calls: tuple[RawToolCall, ...] = ()

    @property
    def called_tools(self) -> bool:
        """Whether the reply has tool calls, which a summary must not have."""
        return bool(self.calls)


class ModelClient:
    """Sends one request to a model and returns the complete reply.

    Args:
        provider: Gives access to models.
        sleep: Waits before a retry.
    """

    def __init__(self, provider: Provider, sleep: Sleep = asyncio.sleep) -> None:
        self._provider = provider
        self._sleep = sleep

    async def ask(self, request: ModelRequest, phase: str, tracker: RequestTracker) -> ModelReply:
        """Send one request and return the reply; retries if waiting helps.

        Args:
            request: The request.
            phase: Its purpose, in words for the user: "choosing what to keep".
            tracker: Takes progress and usage.

        Raises:
            ProviderError: The request failed for good.
        """
        retry = 1
        before: ProviderError | None = None
        while True:
            try:
                return await self._send(request, phase, tracker)
            except ProviderError as error:
                reason = _PASSING_FAULTS.get(error.kind)
                delay_s = retry_delay_s(error, retry, random.random(), before=before)
                if reason is None or delay_s is None or retry > _MOST_RETRIES:
                    raise
                tracker.tell(f"waiting {format_remaining(delay_s)} ({reason})")
                await self._sleep(delay_s)
                retry += 1
                before = error

    async def _send(self, request: ModelRequest, phase: str, tracker: RequestTracker) -> ModelReply:
        texts: list[str] = []
        calls: dict[int, RawToolCall] = {}
        finish: FinishReason | None = None
        tracker.tell(phase)

        def tell_wait(waited_s: float, _is_alive: bool) -> None:
            tracker.tell(f"{phase}, waiting for {format_duration(waited_s)}")

        messages = tuple(map(_repair_message, request.messages))
        awaited = replace(request, messages=messages, on_wait=WaitTeller(tell_wait).hear)
        async with aclosing(_count(self._provider.stream(awaited), tracker)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextChunk(text=text):
                        texts.append(text)
                        tracker.tell(phase, text)
                    case ToolCallChunk():
                        call = calls.setdefault(chunk.index, RawToolCall(chunk.id, chunk.name))
                        call.name = call.name or chunk.name
                        call.arguments_json += chunk.arguments_json
                        tracker.tell(phase, chunk.arguments_json)
                    case FinishChunk(reason=reason):
                        finish = reason
                    case RestartChunk():
                        texts.clear()
                        calls.clear()
                    case UsageChunk() | ThinkingChunk() | NoticeChunk():
                        pass
                    case _:
                        assert_never(chunk)
        if finish is None:
            raise ProviderError("interrupted", "connection lost mid-reply")
        return ModelReply("".join(texts), finish, tuple(calls.values()))


async def _count(
    chunks: AsyncGenerator[Chunk, None], tracker: RequestTracker
) -> AsyncGenerator[Chunk, None]:
    """`chunks` of one request; however it ends, its last usage goes to `tracker`."""
    spent: Usage | None = None
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                if isinstance(chunk, UsageChunk):
                    spent = chunk.usage
                yield chunk
    finally:
        if spent is not None:
            tracker.add(spent)


def failure_of(model: ModelRef, error: AgentTuiError) -> str:
    """What went wrong with `model`, as a clause: ``openai/gpt-6.1-sol returned 500``."""
    if isinstance(error, ProviderError) and error.kind == "server" and (error.status or 0) >= 500:
        return f"{model.name} returned {error.status}"
    return f"{model.name}: {error.message.removesuffix('.')}"


def text_request(
    model: ModelRef,
    prompt: str,
    *,
    system: str,
    max_output_tokens: int,
) -> ModelRequest:
    """A request for text only: one prompt, no tools.

    Args:
        model: The model to ask.
        prompt: The only message.
        system: The system prompt.
        max_output_tokens: Limit of the reply.
    """
    return ModelRequest(
        model=model,
        system=system,
        messages=(UserMessage(content=prompt),),
        max_output_tokens=max_output_tokens,
        purpose="summary",
    )


def add_usage(first: Usage, second: Usage) -> Usage:
    """The sum of both; it is an estimate if either is one."""
    cost = Cost(
        input=first.cost.input + second.cost.input,
        output=first.cost.output + second.cost.output,
        cache_read=first.cost.cache_read + second.cost.cache_read,
        cache_write=first.cost.cache_write + second.cost.cache_write,
        total=first.cost.total + second.cost.total,
    )
    return Usage(
        input=first.input + second.input,
        output=first.output + second.output,
        cache_read=first.cache_read + second.cache_read,
        cache_write=first.cache_write + second.cache_write,
        total_tokens=first.context_tokens + second.context_tokens,
        cost=cost,
        is_estimate=first.is_estimate or second.is_estimate,
    )


def _repair_message(message: Message) -> Message:
    """`message` as it can be sent: text made by code can name files that are not UTF-8."""
    match message:
        case UserMessage(content=str() as text):
            return message.model_copy(update={"content": repair_text(text)})
        case _:
            return message
