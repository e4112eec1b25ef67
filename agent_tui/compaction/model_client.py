"""The client through which compaction asks models: one request, one whole reply."""

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeAlias, assert_never

from agent_tui.durations import elapsed, rounded
from agent_tui.errors import AgentTuiError
from agent_tui.messages import Cost, JsonObject, Usage, UserMessage
from agent_tui.providers.base import (
    FaultKind,
    FinishChunk,
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
from agent_tui.providers.retry import Sleep, retry_delay_s
from agent_tui.providers.silence import WaitTeller

FinishReason: TypeAlias = Literal["stop", "length", "toolUse", "contentFilter"]
"""Why a reply ended, by the provider's word."""

OnProgress: TypeAlias = Callable[[str, int], None]
"""Called with the phase ("choosing what to keep") and the characters received so far."""

OnUsage: TypeAlias = Callable[[Usage], None]
"""Called with what a request used, as soon as that is known and whatever comes of the rest."""

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
"""What is waited out, in words. For the rest the next model, or none, is the quicker way."""


def uncounted(usage: Usage) -> None:
    """For callers that keep no account."""


def unseen(phase: str, received_chars: int) -> None:
    """For callers to whom nobody waits."""


class RequestTracker:
    """Tells of all requests of one piece of work, and adds up what they cost.

    Models that failed count too. `total` is None before the first reply that says what it cost.
    """

    def __init__(self, on_progress: OnProgress, on_usage: OnUsage) -> None:
        self._on_progress = on_progress
        self._on_usage = on_usage
        self._received_chars = 0
        self.total: Usage | None = None

    def begin(self) -> None:
        """Count the characters that come in from none again: another document is written."""
        self._received_chars = 0

    def tell(self, phase: str, received: str = "") -> None:
        """Say what is being done, after `received` came in."""
        self._received_chars += len(received)
        self._on_progress(phase, self._received_chars)

    def add(self, usage: Usage) -> None:
        """One more request was paid for."""
        self.total = usage if self.total is None else add_usage(self.total, usage)
        self._on_usage(usage)


@dataclass(slots=True)
class RawToolCall:
    """A tool call as it came: `arguments_json` may be anything."""

    id: str
    name: str
    arguments_json: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What came back for one request."""

    text: str
    finish: FinishReason
    calls: tuple[RawToolCall, ...] = ()

    @property
    def called_tools(self) -> bool:
        """Whether it has tool calls, which a summary must not."""
        return bool(self.calls)


class ModelClient:
    """Sends one request to a model and gives back the whole reply.

    Args:
        provider: Where models are.
        sleep: Waits before a request is tried again.
    """

    def __init__(self, provider: Provider, sleep: Sleep = asyncio.sleep) -> None:
        self._provider = provider
        self._sleep = sleep

    async def ask(self, request: ModelRequest, phase: str, tracker: RequestTracker) -> ModelReply:
        """The reply to one request, which is repeated where waiting helps.

        Args:
            request: What is sent.
            phase: What it is for, in words for the person: "choosing what to keep".
            tracker: Told of the progress and of what was paid.

        Raises:
            ProviderError: the request failed for good.
        """
        retry = 1
        while True:
            try:
                return await self._send(request, phase, tracker)
            except ProviderError as error:
                reason = _PASSING_FAULTS.get(error.kind)
                delay_s = retry_delay_s(error, retry, random.random())
                if reason is None or delay_s is None or retry > _MOST_RETRIES:
                    raise
                tracker.tell(f"waiting {rounded(delay_s)} ({reason})")
                await self._sleep(delay_s)
                retry += 1

    async def _send(self, request: ModelRequest, phase: str, tracker: RequestTracker) -> ModelReply:
        texts: list[str] = []
        calls: dict[int, RawToolCall] = {}
        finish: FinishReason | None = None
        tracker.tell(phase)

        def tell_wait(waited_s: float, _is_alive: bool) -> None:
            tracker.tell(f"{phase}, waiting for {elapsed(waited_s)}")

        awaited = replace(request, on_wait=WaitTeller(tell_wait).hear)
        async with aclosing(self._provider.stream(awaited)) as chunks:
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
                    case UsageChunk(usage=usage):
                        tracker.add(usage)
                    case FinishChunk(reason=reason):
                        finish = reason
                    case RestartChunk():
                        texts.clear()
                        calls.clear()
                    case ThinkingChunk() | NoticeChunk():
                        pass
                    case _:
                        assert_never(chunk)
        if finish is None:
            raise ProviderError("interrupted", "connection lost mid-reply")
        return ModelReply("".join(texts), finish, tuple(calls.values()))


def failure_of(model: ModelRef, error: AgentTuiError) -> str:
    """What went wrong with `model`, as a clause: ``openai/gpt-5 returned 500``."""
    if isinstance(error, ProviderError) and error.kind == "server" and (error.status or 0) >= 500:
        return f"{model.name} returned {error.status}"
    return f"{model.name}: {error.message.removesuffix('.')}"


def text_request(
    model: ModelRef,
    prompt: str,
    *,
    system: str,
    max_output_tokens: int,
    schema: JsonObject | None = None,
) -> ModelRequest:
    """A request for text alone: one prompt, no tools.

    Args:
        model: Who is asked.
        prompt: The one message.
        system: The system prompt.
        max_output_tokens: The most that is to come back.
        schema: What the reply is to be, as JSON; None for free text.
    """
    return ModelRequest(
        model=model,
        system=system,
        messages=(UserMessage(content=prompt),),
        max_output_tokens=max_output_tokens,
        purpose="summary",
        reply_schema=schema,
    )


def add_usage(first: Usage, second: Usage) -> Usage:
    """Both together; an estimate in either makes the sum one."""
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
