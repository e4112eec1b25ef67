import dataclasses
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.messages import Cost, Usage, UserMessage
from agent_tui.providers.access import AdaptingProvider
from agent_tui.providers.base import Chunk, ModelInfo, ModelRef, ModelRequest, UsageChunk
from agent_tui.providers.limits import BudgetSpent
from agent_tui.providers.spend_limits import Budget

MODEL = ModelRef("openai/some")
PRICED = ModelInfo(MODEL.name, 1_000, 100, input_price=1.0, output_price=2.0)
REQUEST = ModelRequest(MODEL, "", (UserMessage(content="hi"),))


def costing(dollars: float) -> Reply:
    return Reply("ok", usage=Usage(input=10, output=1, cost=Cost(total=dollars)))


async def asked(provider: AdaptingProvider, request: ModelRequest = REQUEST) -> list[Chunk]:
    async with aclosing(provider.stream(request)) as chunks:
        return [chunk async for chunk in chunks]


async def test_the_request_that_reaches_the_budget_is_the_last():
    budget = Budget(0.10)
    script = ScriptedProvider([costing(0.06), costing(0.06), costing(0.06)])
    provider = AdaptingProvider(script, lambda _: PRICED, budget)
    await asked(provider)
    await asked(provider)
    with pytest.raises(BudgetSpent, match=r"\$0\.1200 spent, --max-cost is \$0\.1"):
        await asked(provider)
    assert len(script.requests) == 2


async def test_a_request_that_is_given_up_counts_what_was_told():
    budget = Budget(1.0)
    provider = AdaptingProvider(ScriptedProvider([costing(0.4)]), lambda _: PRICED, budget)
    async with aclosing(provider.stream(REQUEST)) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, UsageChunk):
                break
    assert budget.spent_usd == 0.4


async def test_what_has_no_price_is_not_asked_and_costs_nothing_without_a_limit():
    unpriced = dataclasses.replace(PRICED, input_price=None)
    script = ScriptedProvider([costing(0.0)])
    with pytest.raises(BudgetSpent, match="price of openai/some is unknown"):
        await asked(AdaptingProvider(script, lambda _: unpriced, Budget(1.0)))
    assert await asked(AdaptingProvider(script, lambda _: unpriced, Budget()))


async def test_models_of_this_machine_cost_nothing():
    here = dataclasses.replace(REQUEST, model=ModelRef("local/small"))
    unpriced = dataclasses.replace(PRICED, input_price=None)
    provider = AdaptingProvider(ScriptedProvider([Reply("ok")]), lambda _: unpriced, Budget(0.1))
    assert await asked(provider, here)


async def test_input_that_a_service_does_not_count_is_estimated():
    """2,000 words at $1 a million tokens; the service counts the output, or nothing at all."""
    request = dataclasses.replace(REQUEST, messages=(UserMessage(content="word " * 2_000),))
    for stated in (Usage(output=5, cost=Cost(total=0.001), is_estimate=True), None):
        budget = Budget(1.0)
        inner = Unstated() if stated is None else ScriptedProvider([Reply("ok", usage=stated)])
        chunks = await asked(AdaptingProvider(inner, lambda _: PRICED, budget), request)
        (usage,) = [chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)]
        assert usage.is_estimate
        assert usage.input == pytest.approx(2_000, rel=0.1)
        assert budget.spent_usd == pytest.approx(usage.input / 1e6 + (0.001 if stated else 0))


class Unstated(ScriptedProvider):
    """Sends no usage."""

    def __init__(self) -> None:
        super().__init__([Reply("ok")])

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        async with aclosing(super().stream(request)) as chunks:
            async for chunk in chunks:
                if not isinstance(chunk, UsageChunk):
                    yield chunk
