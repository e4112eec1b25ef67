import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.policy import (
    MAX_FAILURES_IN_A_ROW,
    Breaker,
    ContextLimits,
    RefillWatch,
    context_limits,
    reply_cap_tokens,
    should_compact,
    usable_window,
)
from agent_tui.config import CompactionSettings
from agent_tui.errors import IN_CHAT
from agent_tui.providers.base import ModelInfo
from tests.support.rows import each_row


def limits(window: int = 100_000, reserve: int = 0, **settings: object) -> ContextLimits:
    return context_limits(window, reserve, CompactionSettings.model_validate(settings))


@pytest.mark.parametrize("window", [50_000, 100_000, 125_000])
def test_thresholds_are_fractions_of_the_window(window: int):
    found = limits(window, window // 5)
    assert found.level(int(window * 0.69)) == "normal"
    assert found.level(int(window * 0.71)) == "warn"
    assert found.level(int(window * 0.79)) == "warn"
    assert found.level(int(window * 0.81)) == "trigger"
    assert found.trigger_percent == 80


@pytest.mark.parametrize(("window", "reserve", "percent"), [(8_000, 2_000, 75), (1_000, 900, 50)])
def test_room_is_made_before_the_reply_has_none(window: int, reserve: int, percent: int):
    found = limits(window, reserve)
    assert (found.trigger, found.trigger_percent) == (found.most, percent)
    assert found.warn == round(found.trigger * (0.70 / 0.80))


@pytest.mark.parametrize("window", [125_000, 200_000, 2_000_000])
def test_however_large_a_window_room_is_made_at_as_many_tokens(window: int):
    found = limits(window, 20_000)
    assert (found.warn, found.trigger, found.target) == (87_500, 100_000, 25_000)
    assert found.trigger_percent == 10_000_000 // window


def test_all_of_a_large_window_is_used_when_the_settings_say_so():
    whole = limits(1_000_000, 20_000, trigger_tokens=0, target=0.3)
    assert (whole.warn, whole.trigger, whole.target) == (700_000, 800_000, 300_000)


@pytest.mark.parametrize(
    ("window", "target"),
    [(0, 0), (20_000, 8_000), (50_000, 16_000), (100_000, 20_000), (1_000_000, 25_000)],
)
def test_a_compaction_goes_deep_but_leaves_small_windows_something(window: int, target: int):
    assert limits(window).target == target


def test_a_target_that_was_set_holds_in_every_window():
    assert limits(20_000, target=0.1).target == 2_000
    assert limits(100_000, target=0.5).target == 50_000


def test_a_target_in_tokens_is_the_same_in_every_window_that_is_twice_as_large():
    assert limits(1_000_000, target=20_000).target == 20_000
    assert limits(40_000, target=20_000).target == 20_000
    assert limits(30_000, target=20_000).target == 15_000


def test_the_least_gain_is_a_share_of_the_window_used():
    large = limits(1_000_000)
    assert should_compact(130_000, large, Breaker(), left_tokens=117_500)
    assert not should_compact(130_000, large, Breaker(), left_tokens=117_501)


def test_the_thresholds_themselves_belong_to_the_higher_level():
    assert limits().level(70_000) == "warn"
    assert limits().level(80_000) == "trigger"


def test_a_warning_that_is_to_come_after_the_trigger_comes_with_it():
    assert limits(warn_at=0.9).warn == limits().trigger


def test_an_unknown_window_never_triggers():
    assert limits(0).level(1_000_000) == "normal"
    assert limits(0).trigger_percent == 0


def test_a_reserve_as_large_as_the_window_leaves_half_of_it():
    assert usable_window(8_192, 8_192) == 4_096
    assert usable_window(8_192, -5) == 8_192


def test_automatic_compaction_is_due_at_the_trigger():
    assert should_compact(80_000, limits(), Breaker())
    assert not should_compact(79_999, limits(), Breaker())


def test_after_a_compaction_that_left_much_the_next_one_waits_for_a_gain_or_the_reserve():
    found = limits(reserve=15_000)
    assert not should_compact(80_000, found, Breaker(), left_tokens=71_000)
    assert should_compact(81_000, found, Breaker(), left_tokens=71_000)
    assert should_compact(85_001, found, Breaker(), left_tokens=80_000)


@each_row(
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


def test_the_third_failure_in_a_row_stops_automatic_compaction():
    breaker = Breaker()
    for _ in range(MAX_FAILURES_IN_A_ROW - 1):
        breaker = breaker.after_failure()
    assert not breaker.is_open
    assert breaker.message == ""
    breaker = breaker.after_failure()
    assert breaker.is_open
    assert "/compact" in IN_CHAT.fill(breaker.message)
    assert not should_compact(99_000, limits(), breaker)


def test_a_success_closes_the_breaker_and_forgets_earlier_failures():
    breaker = Breaker().after_failure().after_failure().after_success().after_failure()
    assert breaker.failures == 1


_Step = str
_STEPS = st.lists(st.sampled_from(["reply", "compaction", "progress"]), max_size=40)


def _is_loop(steps: list[_Step]) -> bool:
    """The definition: three compactions, and no progress since the first of them."""
    places = [at for at, step in enumerate(steps) if step == "compaction"][-3:]
    return len(places) == 3 and "progress" not in steps[places[0] :]


@given(steps=_STEPS)
def test_a_loop_is_three_compactions_without_progress(steps: list[_Step]):
    watch = RefillWatch()
    for step in steps:
        match step:
            case "reply":
                watch = watch.after_reply()
            case "compaction":
                watch = watch.after_compaction()
            case _:
                watch = watch.after_progress()
    assert watch.is_loop == _is_loop(steps)


def test_the_message_of_a_loop_names_what_fills_the_context_and_the_ways_out():
    watch = RefillWatch()
    for _ in range(3):
        watch = watch.after_compaction()
    said = IN_CHAT.fill(watch.loop_message("read a.py 80 %"))
    for part in ("compacted 3 times", "read a.py 80 %", "/model", "/compact", "fewer files"):
        assert part in said
