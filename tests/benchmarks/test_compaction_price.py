"""The replay of prices: what pauses cost, and what asking in them saves."""

from dataclasses import replace

import pytest

from tests.benchmarks.compaction_price import PRICES, Policy, Prices, Round, replay

ROUNDS = [Round(new=2_000, output=100, calls=1)] * 100
POLICY = Policy(0.8, 0.2, 125_000)
CACHED = next(prices for prices in PRICES if prices.name == "cached")


def units(policy: Policy, pause_every: int, prices: Prices = CACHED) -> float:
    return replay(ROUNDS, policy, prices, 1_000_000, pause_every).units


def test_a_pause_costs_more_unless_the_model_was_asked_in_it():
    asked = replace(POLICY, is_idle=True)
    assert units(POLICY, 0) == units(asked, 0)
    assert units(POLICY, 0) < units(POLICY, 20)
    assert units(asked, 20) < units(POLICY, 20)


def test_where_nothing_is_cached_a_pause_costs_nothing():
    uncached = next(prices for prices in PRICES if prices.name == "uncached")
    assert units(POLICY, 20, uncached) == pytest.approx(units(POLICY, 0, uncached))
