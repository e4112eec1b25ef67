"""What a reply cost: token counts at the prices in litellm's table."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent_tui.messages import Cost, Usage
from agent_tui.providers.wires.base import WireRequest


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one request; `fresh` excludes those read from or written to the cache.

    `is_estimate`: the provider sent no counts.
    """

    fresh: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    is_estimate: bool = False

    def priced(self, request: WireRequest, known: Mapping[str, object]) -> Usage:
        """These counts with their cost.

        The user's own server may reuse a known model name: it has no price. No request has zero
        tokens: if none were counted, the counts are an estimate.

        Args:
            request: The request.
            known: What the table says of its model: prices in dollars per token, 0 if unknown.
        """
        prices: Mapping[str, object] = {} if request.base_url else known
        input_price = _price(prices, "input_cost_per_token", 0.0)
        cost = Cost(
            input=self.fresh * input_price,
            output=self.output * _price(prices, "output_cost_per_token", 0.0),
            cache_read=self.cache_read * _price(prices, "cache_read_input_token_cost", input_price),
            cache_write=self.cache_write
            * _price(prices, "cache_creation_input_token_cost", input_price),
        )
        prompt = self.fresh + self.cache_read + self.cache_write
        total = cost.input + cost.output + cost.cache_read + cost.cache_write
        return Usage(
            input=self.fresh,
            output=self.output,
            cache_read=self.cache_read,
            cache_write=self.cache_write,
            total_tokens=prompt + self.output,
            cost=cost.model_copy(update={"total": total}),
            is_estimate=self.is_estimate or not prompt,
        )


def _price(prices: Mapping[str, object], name: str, default: float) -> float:
    value = prices.get(name)
    return float(value) if isinstance(value, int | float) else default
