"""Strategies are found by their names."""

from agent_tui.compaction.strategies.base import StrategyServices
from agent_tui.compaction.strategies.registry import build_strategies, strategy_descriptions
from agent_tui.config import STRATEGY_NAMES
from agent_tui.tokens import TokenCounter
from tests.compaction.writer import Models


def test_every_name_has_a_description_and_a_strategy(counter: TokenCounter):
    built = build_strategies(StrategyServices(None, counter, Models()))
    assert set(built) == set(STRATEGY_NAMES)
    assert len({*strategy_descriptions().values()}) == len(STRATEGY_NAMES)
