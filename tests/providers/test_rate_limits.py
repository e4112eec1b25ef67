"""What is known of the limits of services."""

from agent_tui.providers.base import ModelRef
from agent_tui.providers.rate_limits import RateLimit, StatedLimits, tightest_of_plan

MODEL = ModelRef("chatgpt/gpt-5")
SHORT = RateLimit("requests", 0.1, 1_010.0)
HOURS = RateLimit("5h", 0.5, 4_000.0, 18_000)
DAYS = RateLimit("7d", 0.2, 90_000.0, 604_800)


def test_a_limit_that_has_reset_is_no_longer_known():
    now_s = 1_000.0
    limits = StatedLimits(lambda: now_s)
    limits.note(MODEL, [DAYS, HOURS, SHORT])
    assert limits.of(MODEL) == (SHORT, HOURS, DAYS)
    now_s = 5_000.0
    assert limits.of(MODEL) == (DAYS,)


def test_another_model_of_the_service_has_the_same_limits_and_another_service_has_none():
    limits = StatedLimits(lambda: 0.0)
    limits.note(MODEL, [HOURS])
    assert limits.of(ModelRef("chatgpt/other")) == (HOURS,)
    assert not limits.of(ModelRef("openai/gpt-5"))
    limits.forget("chatgpt")
    assert not limits.of(MODEL)


def test_the_tightest_limit_of_a_plan_is_the_one_with_the_least_left():
    assert tightest_of_plan([SHORT, HOURS, DAYS]) == DAYS
    assert tightest_of_plan([SHORT]) is None
