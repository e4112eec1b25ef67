"""What a provider stated of a request's tokens counts, however the request ends."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import pytest
from pydantic import JsonValue

from agent_tui.features.google.gemini import GEMINI
from agent_tui.messages import JsonObject, UserMessage
from agent_tui.providers.access import AdaptingProvider
from agent_tui.providers.base import Chunk, ModelInfo, ModelRef, ModelRequest, UsageChunk
from agent_tui.providers.client import ModelClient, RequestTracker, ignore_usage, unseen
from agent_tui.providers.spend_limits import Budget
from agent_tui.providers.wires.anthropic import ANTHROPIC
from agent_tui.providers.wires.base import Address, Attempt, Link, Wire
from agent_tui.providers.wires.completions import COMPLETIONS

PRICES: Mapping[str, JsonValue] = {"input_cost_per_token": 3e-6, "output_cost_per_token": 15e-6}
KEYS = {"ANTHROPIC_API_KEY": "x", "GEMINI_API_KEY": "x", "XAI_API_KEY": "x"}
BEGINS: JsonObject = {"type": "message_start", "message": {"usage": {"input_tokens": 100_000}}}


class PausingProvider:
    """Sends the events of one reply through a wire, then nothing more, or ends."""

    def __init__(self, wire: Wire, *events: JsonObject, waits: bool = True) -> None:
        self._wire = wire
        self._waits = waits
        self._events = events
        self.pauses = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        link = Link(KEYS, lambda _: PRICES, self._send)
        assert self._wire.stream is not None
        way = Attempt(self._wire, request, request.model.model_id)
        async with aclosing(self._wire.stream(way, link)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _send(self, _address: Address, _body: bytes) -> AsyncGenerator[JsonObject, None]:
        for event in self._events:
            yield event
        self.pauses.set()
        if self._waits:
            await asyncio.Event().wait()

    async def warm(self, model: ModelRef) -> None: ...

    async def aclose(self) -> None: ...


def request_to(name: str) -> ModelRequest:
    return ModelRequest(ModelRef(name), "", (UserMessage(content="hi"),))


def piece(text: str, usage: JsonObject) -> JsonObject:
    return {"choices": [{"delta": {"content": text}}], "usage": usage}


@pytest.mark.parametrize(
    ("wire", "name", "events", "cost_usd"),
    [
        (ANTHROPIC, "anthropic/claude", (BEGINS,), 0.3),
        (
            COMPLETIONS,
            "xai/grok",
            tuple(piece("a", {"prompt_tokens": 1_000, "completion_tokens": n}) for n in (1, 2)),
            0.00303,
        ),
        (
            GEMINI,
            "gemini/gemini",
            ({"usageMetadata": {"promptTokenCount": 1_000, "candidatesTokenCount": 2}},),
            0.00303,
        ),
    ],
)
async def test_what_was_stated_before_a_request_is_cancelled_is_paid(
    wire: Wire, name: str, events: tuple[JsonObject, ...], cost_usd: float
):
    budget, inner = Budget(1.0), PausingProvider(wire, *events)
    info = ModelInfo(name, 200_000, 1_000, input_price=3.0, output_price=15.0)
    provider = AdaptingProvider(inner, lambda _: info, budget)
    tracker = RequestTracker(unseen, ignore_usage)
    asked = asyncio.create_task(ModelClient(provider).ask(request_to(name), "asking", tracker))
    await inner.pauses.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert budget.spent_usd == pytest.approx(cost_usd)
    assert tracker.total is not None
    assert tracker.total.cost.total == pytest.approx(cost_usd)


async def test_counts_that_did_not_change_are_told_once():
    text: JsonObject = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}
    inner = PausingProvider(ANTHROPIC, BEGINS, text, text, waits=False)
    async with aclosing(inner.stream(request_to("anthropic/claude"))) as chunks:
        told = [chunk async for chunk in chunks]
    assert sum(isinstance(chunk, UsageChunk) for chunk in told) == 1
