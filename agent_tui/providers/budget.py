"""What a run of the program may cost: nothing is asked of a model once that is reached."""

from dataclasses import dataclass

from agent_tui.providers.base import ModelInfo, ModelRef, ProviderError


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
