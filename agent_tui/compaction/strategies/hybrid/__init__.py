"""The strategy ``hybrid``: metadata for tool results, fewer words for old messages."""

from agent_tui.compaction.strategies.base import Strategy, StrategyServices
from agent_tui.compaction.strategies.hybrid.strategy import HybridStrategy

DESCRIPTION = "message by message, the model judging each"


def build(services: StrategyServices) -> Strategy:
    """See `StrategyModule.build`."""
    return HybridStrategy(services)
