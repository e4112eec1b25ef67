"""The strategy ``agent``: a model compresses a copy of the context with four tools."""

from agent_tui.compaction.strategies.agent.strategy import CompressionAgent
from agent_tui.compaction.strategies.base import Strategy, StrategyServices

DESCRIPTION = "the model edits a copy of the conversation"


def build(services: StrategyServices) -> Strategy:
    """See `StrategyModule.build`."""
    return CompressionAgent(services)
