"""The cost limit of a run: once it is reached, no more requests are sent."""

from dataclasses import dataclass

from agent_tui.providers.base import ModelInfo, ModelRef, ProviderError


@dataclass(slots=True)
class Budget:
    """The cost limit of all requests of a run, in US dollars, including summaries and helpers.

    Attributes:
        limit_usd: The limit; None for no limit.
        spent_usd: Spent so far, as far as providers report it.
    """

    limit_usd: float | None = None
    spent_usd: float = 0.0

    def refusal(self, model: ModelRef, info: ModelInfo) -> str:
        """Why no request may be sent to `model` now; empty if it may."""
        if self.limit_usd is None or model.runs_here:
            return ""
        if info.input_price is None:
            return f"The price of {model.name} is unknown, so --max-cost cannot be enforced."
        if self.spent_usd < self.limit_usd:
            return ""
        return f"Stopped: ${self.spent_usd:.4f} spent, --max-cost is ${self.limit_usd:g}."


class BudgetSpent(ProviderError):
    """Nothing was sent: the budget is spent, or the model's price is unknown."""

    def __init__(self, why: str) -> None:
        super().__init__("quota", why, "Start again with a higher --max-cost, or without it.")
