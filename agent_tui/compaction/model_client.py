"""Asking a model during a compaction: whole replies, with retries where waiting helps."""

import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, TypeVar, assert_never

from agent_tui.compaction.summary.prompts import SYSTEM_PROMPT
from agent_tui.compaction.summary.validate import FinishReason, SummaryReply
from agent_tui.messages import Cost, JsonObject, Usage, UserMessage
from agent_tui.providers.base import (
    FaultKind,
    FinishChunk,
    ModelRef,
    ModelRequest,
    Provider,
    ProviderError,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.providers.retry import Sleep, retry_delay_s

ReplyT = TypeVar("ReplyT")

OnProgress: TypeAlias = Callable[[str, int], None]
"""Called with the phase ("summarising 2/3") and the characters received so far."""

OnUsage: TypeAlias = Callable[[Usage], None]
"""Called with what a request used, as soon as that is known and whatever comes of the rest."""

_MOST_RETRIES = 2
_PASSING_FAULTS: Mapping[FaultKind, str] = MappingProxyType(
    {
        "rate_limit": "rate limited",
        "overloaded": "overloaded",
        "server": "server error",
        "network": "not reached",
        "interrupted": "broken off",
    }
)
"""What is waited out, in words. For the rest the next model, or none, is the quicker way."""


class Spending:
    """What all requests for one summary used, of models that failed too.

    `total` is None before the first that says so.
    """

    def __init__(self, on_usage: OnUsage) -> None:
        self._on_usage = on_usage
        self.total: Usage | None = None

    def add(self, usage: Usage) -> None:
        """One more request."""
        self.total = usage if self.total is None else add_usage(self.total, usage)
        self._on_usage(usage)


async def with_retries(
    send: Callable[[], Awaitable[ReplyT]], sleep: Sleep, on_wait: Callable[[str], None]
) -> ReplyT:
    """What `send` gives, which is done again where waiting helps.

    Args:
        send: One request.
        sleep: Waits before the next.
        on_wait: Told of each wait in words: "waiting 4 s (rate limited)".

    Raises:
        ProviderError: the request failed for good.
    """
    retry = 1
    while True:
        try:
            return await send()
        except ProviderError as error:
            reason = _PASSING_FAULTS.get(error.kind)
            delay_s = retry_delay_s(error, retry, random.random())
            if reason is None or delay_s is None or retry > _MOST_RETRIES:
                raise
            on_wait(f"waiting {delay_s:.0f} s ({reason})")
            await sleep(delay_s)
            retry += 1


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
    calls: tuple[RawToolCall, ...]
    finish: FinishReason


class ModelClient:
    """Sends requests to a provider and gives back whole replies.

    Args:
        provider: Where the model is.
        sleep: Waits before a request is tried again.
        on_progress: Told of each phase and how many characters have come in all.
        spending: Adds up what was paid for.
    """

    def __init__(
        self, provider: Provider, sleep: Sleep, on_progress: OnProgress, spending: Spending
    ) -> None:
        self._provider = provider
        self._sleep = sleep
        self._on_progress = on_progress
        self._spending = spending
        self._received_chars = 0

    async def ask(self, request: ModelRequest, phase: str) -> ModelReply:
        """The reply to one request, which is repeated where waiting helps.

        Raises:
            ProviderError: the request failed for good.
        """
        return await with_retries(
            lambda: self._send(request, phase),
            self._sleep,
            lambda waiting: self._on_progress(waiting, self._received_chars),
        )

    async def _send(self, request: ModelRequest, phase: str) -> ModelReply:
        texts: list[str] = []
        calls: dict[int, RawToolCall] = {}
        finish: FinishReason | None = None
        self._on_progress(phase, self._received_chars)
        async with aclosing(self._provider.stream(request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextChunk(text=text):
                        texts.append(text)
                        self._receive(text, phase)
                    case ToolCallChunk():
                        call = calls.setdefault(chunk.index, RawToolCall(chunk.id, chunk.name))
                        call.name = call.name or chunk.name
                        call.arguments_json += chunk.arguments_json
                        self._receive(chunk.arguments_json, phase)
                    case UsageChunk(usage=usage):
                        self._spending.add(usage)
                    case FinishChunk(reason=reason):
                        finish = reason
                    case ThinkingChunk():
                        pass
                    case _:
                        assert_never(chunk)
        if finish is None:
            raise ProviderError("interrupted", "the reply broke off before its end")
        return ModelReply("".join(texts), tuple(calls.values()), finish)

    def _receive(self, text: str, phase: str) -> None:
        self._received_chars += len(text)
        self._on_progress(phase, self._received_chars)


class SummaryClient:
    """Asks one model for summaries: a prompt out, a text back."""

    def __init__(
        self,
        provider: Provider,
        model: ModelRef,
        sleep: Sleep,
        on_progress: OnProgress,
        spending: Spending,
    ) -> None:
        self._client = ModelClient(provider, sleep, on_progress, spending)
        self._model = model

    async def ask(
        self,
        prompt: str,
        phase: str,
        *,
        max_output_tokens: int,
        schema: JsonObject | None,
        system: str = SYSTEM_PROMPT,
    ) -> SummaryReply:
        """The reply to one request, which is repeated where waiting helps.

        Raises:
            ProviderError: the request failed for good.
        """
        request = ModelRequest(
            model=self._model,
            system=system,
            messages=(UserMessage(content=prompt),),
            max_output_tokens=max_output_tokens,
            purpose="summary",
            reply_schema=schema,
        )
        reply = await self._client.ask(request, phase)
        return SummaryReply(reply.text, reply.finish, bool(reply.calls))


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
