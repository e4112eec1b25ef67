"""Strategies are found by their name: a module each."""

from pathlib import Path

import pytest

from agent_tui.compaction import strategies
from agent_tui.compaction.strategies import registry
from agent_tui.compaction.strategies.base import StrategyServices
from agent_tui.compaction.strategies.registry import build_strategies, strategy_descriptions
from agent_tui.config import STRATEGY_NAMES
from agent_tui.tokens import TokenCounter
from tests.compaction.writer import Models

_OWN_STRATEGY = """
DESCRIPTION = "nothing at all"

def build(services):
    return ("built with", services.counter)
"""


def test_every_name_has_a_description_and_a_strategy(counter: TokenCounter):
    built = build_strategies(StrategyServices(None, counter, Models()))
    assert set(built) == set(STRATEGY_NAMES)
    assert len({*strategy_descriptions().values()}) == len(STRATEGY_NAMES)


def test_a_strategy_of_ones_own_is_a_file_and_a_name(
    counter: TokenCounter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "mine.py").write_text(_OWN_STRATEGY)
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "STRATEGY_NAMES", (*STRATEGY_NAMES, "mine"))
    built = build_strategies(StrategyServices(None, counter, Models()))
    assert {str(name): made for name, made in built.items()}["mine"] == ("built with", counter)
    assert strategy_descriptions()["mine"] == "nothing at all"
