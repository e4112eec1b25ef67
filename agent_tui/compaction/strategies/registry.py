"""The strategies that there are beside the tiers, by the name a person gives."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

from agent_tui.compaction.strategies.agent.strategy import CompressionAgent
from agent_tui.compaction.strategies.base import Strategy
from agent_tui.compaction.strategies.hybrid.strategy import HybridStrategy, OnDecisions
from agent_tui.compaction.summary.candidates import ModelLookup
from agent_tui.config import CompactionSettings, CompactionStrategy
from agent_tui.providers.base import Provider
from agent_tui.providers.retry import Sleep
from agent_tui.tokens import TokenCounter


def build_strategies(
    provider: Provider | None,
    counter: TokenCounter,
    models: ModelLookup,
    settings: CompactionSettings,
    *,
    sleep: Sleep = asyncio.sleep,
    on_decisions: OnDecisions | None = None,
) -> Mapping[CompactionStrategy, Strategy]:
    """Every strategy but the tiers, ready to plan.

    Args:
        provider: Where models are; None for none.
        counter: Estimates.
        models: Answers what is known of models.
        settings: Of compaction.
        sleep: Waits before a request is tried again.
        on_decisions: Told what became of which message, and why; None for no log.
    """
    return MappingProxyType(
        {
            "hybrid": HybridStrategy(provider, counter, models, settings, sleep, on_decisions),
            "agent": CompressionAgent(provider, counter, models, settings, sleep),
        }
    )
