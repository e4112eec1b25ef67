"""When a limit resets, in the forms in which services state it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.providers.base import ModelRef
from agent_tui.providers.faults.classify import provider_error
from agent_tui.providers.faults.fault import Fault, fault_of
from agent_tui.providers.faults.reset_time import (
    first_fields,
    seconds_to_reset,
    telling_fields,
)
from agent_tui.providers.rate_limits import limits_stated
from agent_tui.providers.wires.base import RefusedError
from tests.support.rows import each_row

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
EPOCH_S = int(NOW.timestamp())
HOUR_S = 3_600.0


def of_headers(**headers: str) -> float | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return seconds_to_reset(named, {}, "", NOW)


def of_body(body: object) -> float | None:
    return seconds_to_reset({}, first_fields(telling_fields(body)), "", NOW)


@each_row(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "18000"}, 5 * HOUR_S),
        ({"retry-after": format_datetime(NOW + timedelta(hours=9), usegmt=True)}, 9 * HOUR_S),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=9), usegmt=True)}, 0),
        ({"retry-after": "20", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "999999999999999999"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_to_reset(headers, {}, "", NOW) == seconds


def test_anthropic_states_the_reset_of_each_limit_but_only_one_that_is_used_up_counts() -> None:
    headers = {
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-03-01T13:00:00Z",
        "anthropic-ratelimit-tokens-remaining": "0",
        "anthropic-ratelimit-tokens-reset": "2026-03-01T12:00:45Z",
    }
    assert seconds_to_reset(headers, {}, "", NOW) == 45
    headers["anthropic-ratelimit-tokens-remaining"] = "1000"
    assert seconds_to_reset(headers, {}, "", NOW) is None


def test_an_anthropic_subscription_waits_for_the_latest_window_that_rejects() -> None:
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(EPOCH_S + 180),
        "anthropic-ratelimit-unified-5h-status": "rejected",
        "anthropic-ratelimit-unified-5h-reset": str(EPOCH_S + 180),
        "anthropic-ratelimit-unified-7d-status": "rejected",
        "anthropic-ratelimit-unified-7d-reset": str(EPOCH_S + 86_400),
        "anthropic-ratelimit-unified-overage-status": "rejected",
        "anthropic-ratelimit-unified-overage-reset": str(EPOCH_S + 999_999),
    }
    assert seconds_to_reset(headers, {}, "", NOW) == 86_400
    throttled = {name: value.replace("rejected", "allowed") for name, value in headers.items()}
    assert seconds_to_reset(throttled, {}, "", NOW) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("6m0s", 360), ("20ms", 0.02), ("1h2m3.5s", 3_723.5), ("33011.38", 33011.38)],
)
def test_openais_limits_reset_after_a_duration(value: str, seconds: float) -> None:
    limit = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": value}
    other = {"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "99h"}
    assert seconds_to_reset(limit | other, {}, "", NOW) == seconds


def test_a_chatgpt_subscription_states_its_reset_in_the_body() -> None:
    error = {"type": "usage_limit_reached", "plan_type": "plus", "resets_in_seconds": 13_872}
    assert of_body({"error": error}) == 13_872
    assert of_body({"error": {"resets_at": EPOCH_S + 60, "eligible_promo": None}}) == 60


def test_codex_headers_count_if_their_window_is_full() -> None:
    headers = {
        "x_codex_primary_used_percent": "100",
        "x_codex_primary_reset_after_seconds": "471285",
        "x_codex_secondary_used_percent": "80",
        "x_codex_secondary_reset_after_seconds": "999999",
    }
    assert of_headers(**headers) == 471_285
    headers["x_codex_primary_used_percent"] = "99"
    assert of_headers(**headers) is None


def test_gemini_states_a_delay_and_the_reset_of_a_quota() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "45.837906927s"}
    assert of_body([{"error": {"details": [info]}}]) == pytest.approx(45.837906927)
    metadata = {
        "quotaResetDelay": "3h12m7.5s",
        "quotaResetTimeStamp": "2026-03-01T15:12:07.123456789Z",
    }
    seconds = of_body({"error": {"details": [{"metadata": metadata}]}})
    assert seconds == pytest.approx(3 * HOUR_S + 727, abs=1)


def test_openrouter_repeats_its_headers_in_the_body_in_milliseconds() -> None:
    headers = {
        "X-RateLimit-Limit": "50",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str((EPOCH_S + 7_200) * 1_000),
    }
    assert of_body({"error": {"code": 429, "metadata": {"headers": headers}}}) == 7_200


@each_row(
    ("text", "seconds"),
    [
        (f"Claude AI usage limit reached|{EPOCH_S + 3_600}", HOUR_S),
        ("You've hit your usage limit. Please try again in 3h 5m.", 3 * HOUR_S + 300),
        ("or try again in 4 days 20 hours 9 minutes.", 116 * HOUR_S + 540),
        ("try again in 1 hour, 5 minutes and 3 seconds", HOUR_S + 303),
        ("Please try again in 7m12s. Visit ...", 432),
        ("Please try again in 360ms.", 0.36),
        ("Please retry in 38.922534355s.", 38.922534355),
        ("Your quota will reset after 12s.", 12),
        ("The limit resets at 2026-03-01T14:00:00Z", 2 * HOUR_S),
        ('{"details": [{"retryDelay": "17.5s"}]}', 17.5),
        ("Try again in a while.", None),
        ("Try again in 3 requests.", None),
        ("Try again at 7:58 PM.", None),
    ],
)
def test_the_text_may_state_it(text: str, seconds: float | None) -> None:
    assert seconds_to_reset({}, {}, text, NOW) == seconds


_NAMES = st.sampled_from(
    [
        *("retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-remaining"),
        *("anthropic-ratelimit-unified-reset", "anthropic-ratelimit-unified-status"),
        *("x-codex-primary-reset-at", "x-codex-primary-used-percent", "resets_at", "retrydelay"),
    ]
)
_VALUES = st.one_of(
    st.text(),
    st.sampled_from(["rejected", "0", "100", "0001-01-01T00:00:00+23:59", "1h" * 50, "9" * 400]),
    st.floats().map(str),
    st.integers().map(str),
    st.datetimes(timezones=st.timezones()).map(str),
)
_FIELDS = st.dictionaries(_NAMES, _VALUES)


@given(_FIELDS, _FIELDS, st.text() | _VALUES.map("try again in {}".format))
def test_any_headers_fields_and_text_give_none_or_a_time_within_a_year(
    headers: Mapping[str, str], fields: Mapping[str, str], text: str
) -> None:
    seconds = seconds_to_reset(headers, fields, text, NOW)
    assert seconds is None or 0 <= seconds <= 366 * 86_400


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["reset", "a"]), inner),
)


@given(_JSON)
def test_any_body_is_searched(body: object) -> None:
    assert all("reset" in name for name, _ in telling_fields(body))


def refused(status: int, body: object, **headers: str) -> Fault:
    text = json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    parsed = body if isinstance(body, dict) else None
    return fault_of(RefusedError(text, status, parsed, dict(httpx.Headers(named))), ())


LIMIT = {"type": "usage_limit_reached", "message": "The usage limit has been reached"}


def test_a_usage_limit_with_a_reset_is_waited_for_and_one_without_is_not() -> None:
    model = ModelRef("openai/gpt-5")
    known = provider_error(refused(429, {"error": LIMIT | {"resets_in_seconds": 9_000}}), model)
    assert (known.kind, known.retry_after_s) == ("rate_limit", 9_000)
    unknown = provider_error(refused(429, {"error": LIMIT}), model)
    assert (unknown.kind, unknown.retry_after_s) == ("quota", None)


def test_an_empty_balance_is_hopeless_even_with_a_time() -> None:
    body = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    error = provider_error(refused(429, body, retry_after="3600"), ModelRef("openai/gpt-5"))
    assert (error.kind, error.is_retryable) == ("quota", False)


def test_a_limit_that_is_refused_as_forbidden_is_a_limit() -> None:
    body = {"error": {"message": "Usage limit reached. Try again in 2h."}}
    error = provider_error(refused(403, body), ModelRef("x/y"))
    assert (error.kind, error.retry_after_s) == ("rate_limit", 2 * HOUR_S)


IN_AN_HOUR = str(EPOCH_S + int(HOUR_S))


@each_row(
    ("headers", "limits"),
    [
        (
            {
                "anthropic-ratelimit-requests-limit": "1000",
                "anthropic-ratelimit-requests-remaining": "999",
                "anthropic-ratelimit-requests-reset": "2026-03-01T13:00:00Z",
                "anthropic-ratelimit-input-tokens-limit": "80000",
                "anthropic-ratelimit-input-tokens-remaining": "20000",
                "anthropic-ratelimit-input-tokens-reset": "2026-03-01T12:00:30Z",
            },
            [("requests", 0.999, HOUR_S, 0), ("input tokens", 0.25, 30, 0)],
        ),
        (
            {
                "anthropic-ratelimit-unified-status": "allowed",
                "anthropic-ratelimit-unified-reset": IN_AN_HOUR,
                "anthropic-ratelimit-unified-5h-utilization": "0.62",
                "anthropic-ratelimit-unified-5h-reset": IN_AN_HOUR,
                "anthropic-ratelimit-unified-5h-status": "allowed",
                "anthropic-ratelimit-unified-7d-utilization": "1.02",
                "anthropic-ratelimit-unified-7d-reset": IN_AN_HOUR,
                "anthropic-ratelimit-unified-overage-reset": IN_AN_HOUR,
            },
            [("5h", 0.38, HOUR_S, 5 * HOUR_S), ("7d", 0, HOUR_S, 168 * HOUR_S)],
        ),
        (
            {
                "x-ratelimit-limit-requests": "5000",
                "x-ratelimit-remaining-requests": "4999",
                "x-ratelimit-reset-requests": "12ms",
                "x-ratelimit-limit-tokens": "160000",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            [("requests", 0.9998, 0.012, 0), ("tokens", 0, 360, 0)],
        ),
        (
            {
                "x-codex-primary-used-percent": "62.5",
                "x-codex-primary-window-minutes": "300",
                "x-codex-primary-reset-at": IN_AN_HOUR,
                "x-codex-secondary-used-percent": "3",
                "x-codex-secondary-window-minutes": "10080",
                "x-codex-secondary-reset-after-seconds": "7200",
                "x-codex-bengalfox-primary-used-percent": "91",
                "x-codex-bengalfox-primary-window-minutes": "10080",
                "x-codex-bengalfox-primary-reset-at": IN_AN_HOUR,
                "x-codex-credits-balance": "17.50",
            },
            [
                ("5h", 0.375, HOUR_S, 5 * HOUR_S),
                ("7d", 0.97, 2 * HOUR_S, 168 * HOUR_S),
                ("bengalfox 7d", 0.09, HOUR_S, 168 * HOUR_S),
            ],
        ),
        (
            {
                "x-ratelimit-limit": "100",
                "x-ratelimit-remaining": "25",
                "x-ratelimit-reset": f"{IN_AN_HOUR}000",
            },
            [("requests", 0.25, HOUR_S, 0)],
        ),
        ({"x-ratelimit-reset-requests": "1s"}, []),
        ({"x-ratelimit-limit": "0", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}, []),
        ({"retry-after": "7", "x-codex-primary-used-percent": "62"}, []),
        ({}, []),
    ],
)
def test_what_is_left_of_each_limit_is_read_from_any_response(
    headers: dict[str, str], limits: list[tuple[str, float, float, float]]
) -> None:
    found = limits_stated(headers, NOW)
    assert [(one.name, one.window_s) for one in found] == [(row[0], row[3]) for row in limits]
    for one, (_, left, reset_s, _) in zip(found, limits, strict=True):
        assert one.left == pytest.approx(left)
        assert one.resets_at == pytest.approx(EPOCH_S + reset_s)


@each_row("value", ["", "NaN", "-1", "1e999", "9" * 400, "½", "62%", "0x10", "\x1b[31m", "soon"])
def test_odd_values_state_no_limit_or_one_within_its_bounds(value: str) -> None:
    for name in ("used-percent", "window-minutes", "reset-at"):
        headers = {
            "x-codex-primary-used-percent": "62",
            "x-codex-primary-window-minutes": "300",
            "x-codex-primary-reset-at": IN_AN_HOUR,
            f"x-codex-primary-{name}": value,
        }
        for limit in limits_stated(headers, NOW):
            assert 0 <= limit.left <= 1
            assert limit.window_s < float("inf")
