"""What a run of the program may cost: nothing is asked of a model once that is reached."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from agent_tui.providers.base import (
    Chunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    PrefillingProvider,
    Provider,
    ProviderError,
    UsageChunk,
)


@dataclass(slots=True)
class Budget:
    """What all requests of a run may cost together, in US dollars; summaries and helpers count.

    Attributes:
        limit_usd: The most; None for any amount.
        spent_usd: What was spent so far, as far as providers told.
    """

    limit_usd: float | None = None
    spent_usd: float = 0.0

    def refusal(self, model: ModelRef, info: ModelInfo) -> str:
        """Why nothing may be asked of `model` now; empty where it may."""
        if self.limit_usd is None or model.runs_here:
            return ""
        if info.input_price is None:
            return f"The price of {model.name} is unknown, so --max-cost cannot be enforced."
        if self.spent_usd < self.limit_usd:
            return ""
        return f"Stopped: ${self.spent_usd:.4f} spent, --max-cost is ${self.limit_usd:g}."


class BudgetSpent(ProviderError):
    """Nothing was sent: the run may spend no more, or what it would spend is not known."""

    def __init__(self, why: str) -> None:
        super().__init__("quota", why, "Start again with a higher --max-cost, or without it.")


class BudgetedProvider:
    """Passes requests on while the budget lasts, and counts what they cost.

    A request that is under way is never broken off: the last one may go beyond the limit.

    Args:
        inner: Where requests go.
        info: What is known of a model.
        budget: What may be spent.
    """

    def __init__(
        self, inner: Provider, info: Callable[[ModelRef], ModelInfo], budget: Budget
    ) -> None:
        self._inner = inner
        self._info = info
        self._budget = budget

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`.

        Raises:
            BudgetSpent: nothing may be asked any more.
            ProviderError: the request failed, or the stream broke off.
        """
        if why := self._budget.refusal(request.model, self._info(request.model)):
            raise BudgetSpent(why)
        cost_usd = 0.0
        try:
            async with aclosing(self._inner.stream(request)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, UsageChunk):
                        cost_usd = chunk.usage.cost.total
                    yield chunk
        finally:
            self._budget.spent_usd += cost_usd

    async def prefill(self, request: ModelRequest) -> None:
        """Let a provider that can get ready for `request`; does nothing for others."""
        if isinstance(self._inner, PrefillingProvider):
            await self._inner.prefill(request)

    async def warm(self, model: ModelRef) -> None:
        """See `Provider.warm`."""
        await self._inner.warm(model)

    async def aclose(self) -> None:
        """See `Provider.aclose`."""
        await self._inner.aclose()
