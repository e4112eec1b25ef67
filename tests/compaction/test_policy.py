import pytest

from agent_tui.compaction.policy import (
    MAX_FAILURES_IN_A_ROW,
    Breaker,
    context_level,
    reply_cap_tokens,
    should_compact,
    target_tokens,
    usable_window,
)
from agent_tui.config import CompactionSettings
from agent_tui.providers.base import ModelInfo
from agent_tui.tokens import ContextUsage

SETTINGS = CompactionSettings()


def usage(used: int, window: int = 100_000) -> ContextUsage:
    return ContextUsage(used, window, is_estimate=False)


@pytest.mark.parametrize("window", [8_000, 32_000, 150_000, 200_000, 2_000_000])
def test_thresholds_are_fractions_of_the_window_used_less_the_reserve(window: int):
    reserve = min(16_384, window // 4)
    usable = min(window, 150_000) - reserve
    assert context_level(usage(int(usable * 0.69), window), SETTINGS, reserve) == "normal"
    assert context_level(usage(int(usable * 0.71), window), SETTINGS, reserve) == "warn"
    assert context_level(usage(int(usable * 0.81), window), SETTINGS, reserve) == "trigger"


def test_all_of_a_large_window_is_used_when_the_settings_say_so():
    whole = CompactionSettings(max_window=0, target=0.3)
    assert context_level(usage(700_000, 1_020_000), whole, 20_000) == "warn"
    assert context_level(usage(690_000, 1_020_000), whole, 20_000) == "normal"
    assert target_tokens(1_020_000, 20_000, whole) == 300_000


@pytest.mark.parametrize(
    ("window", "target"),
    [(0, 0), (20_000, 8_000), (50_000, 16_000), (100_000, 20_000), (1_000_000, 30_000)],
)
def test_a_compaction_goes_deep_but_leaves_small_windows_something(window: int, target: int):
    assert target_tokens(window, 0, SETTINGS) == target


def test_a_target_that_was_set_holds_in_every_window():
    assert target_tokens(20_000, 0, CompactionSettings(target=0.1)) == 2_000
    assert target_tokens(100_000, 0, CompactionSettings(target=0.5)) == 50_000


def test_the_least_gain_is_a_share_of_the_window_used():
    full = usage(130_000, 1_000_000)
    assert should_compact(full, SETTINGS, 0, Breaker(), left_tokens=115_000)
    assert not should_compact(full, SETTINGS, 0, Breaker(), left_tokens=115_001)


def test_the_thresholds_themselves_belong_to_the_higher_level():
    assert context_level(usage(70_000), SETTINGS, 0) == "warn"
    assert context_level(usage(80_000), SETTINGS, 0) == "trigger"


def test_an_unknown_window_never_triggers():
    assert context_level(usage(1_000_000, 0), SETTINGS, 0) == "normal"


def test_a_reserve_as_large_as_the_window_leaves_half_of_it():
    assert usable_window(8_192, 8_192) == 4_096
    assert usable_window(8_192, -5) == 8_192


def test_automatic_compaction_is_due_at_the_trigger():
    assert should_compact(usage(80_000), SETTINGS, 0, Breaker())
    assert not should_compact(usage(79_000), SETTINGS, 0, Breaker())


def test_after_a_compaction_that_left_much_the_next_one_waits_for_a_gain_or_the_reserve():
    reserve = 25_000
    assert not should_compact(usage(69_000), SETTINGS, reserve, Breaker(), left_tokens=61_000)
    assert should_compact(usage(71_000), SETTINGS, reserve, Breaker(), left_tokens=61_000)
    assert should_compact(usage(75_001), SETTINGS, reserve, Breaker(), left_tokens=70_000)


@pytest.mark.parametrize(
    ("info", "cap"),
    [
        (ModelInfo("a", 2_048, 8_000, source="server"), 512),
        (ModelInfo("a", 32_768, 1_000, source="setting"), 1_000),
        (ModelInfo("a", 32_000, 8_000, source="guess"), None),
        (ModelInfo("a", 128_000, 8_000, source="server"), 8_000),
        (ModelInfo("a", 128_000, 8_000, source="table"), None),
        (ModelInfo("a", 8_192, 0, source="server"), None),
    ],
)
def test_replies_are_limited_in_small_windows_and_by_servers_of_ones_own(
    info: ModelInfo, cap: int | None
):
    assert reply_cap_tokens(info) == cap


def test_the_limit_of_a_reply_gives_way_to_what_is_used_but_not_altogether():
    info = ModelInfo("a", 8_000, 2_000, source="server")
    assert [reply_cap_tokens(info, used) for used in (6_000, 7_000, 9_000)] == [2_000, 1_000, 500]


def test_automatic_compaction_can_be_turned_off():
    settings = CompactionSettings(auto=False)
    assert not should_compact(usage(99_000), settings, 0, Breaker())
    assert context_level(usage(99_000), settings, 0) == "trigger"


def test_the_third_failure_in_a_row_stops_automatic_compaction():
    breaker = Breaker()
    for _ in range(MAX_FAILURES_IN_A_ROW - 1):
        breaker = breaker.after_failure()
    assert not breaker.is_open
    assert breaker.message == ""
    breaker = breaker.after_failure()
    assert breaker.is_open
    assert "/compact" in breaker.message
    assert not should_compact(usage(99_000), SETTINGS, 0, breaker)


def test_a_success_closes_the_breaker_and_forgets_earlier_failures():
    breaker = Breaker().after_failure().after_failure().after_success().after_failure()
    assert breaker.failures == 1
