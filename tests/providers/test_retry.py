"""When a request is tried again."""

from collections.abc import Callable

import pytest

from agent_tui.providers.base import FaultKind, ProviderError
from agent_tui.providers.limits import MAX_RETRIES, most_retries, retry_delay_s
from tests.support.rows import each_row


def test_delays_double_up_to_a_minute_and_end_after_some_five() -> None:
    error = ProviderError("overloaded", "busy")
    delays = [retry_delay_s(error, attempt, 0.0) for attempt in range(1, 11)]
    assert delays == [2, 4, 8, 16, 32, 60, 60, 60, 60, None]


def unreached() -> ProviderError:
    return ProviderError("network", "refused", is_unproven=True)


def page() -> ProviderError:
    return ProviderError("address", "a web page")


def test_where_nobody_ever_answered_three_tries_are_all() -> None:
    delays = [retry_delay_s(unreached(), attempt, 0.0) for attempt in range(1, 4)]
    assert delays == [2, 4, None]
    assert most_retries(unreached(), 1) == 1


def test_what_is_no_model_server_is_asked_once() -> None:
    assert most_retries(page()) == 0
    assert not page().is_retryable


@pytest.mark.parametrize("make", [unreached, page])
def test_after_a_success_with_an_address_it_is_waited_for(
    make: Callable[[], ProviderError],
) -> None:
    error = make()
    error.has_answered = True
    assert most_retries(error) == MAX_RETRIES


def test_jitter_adds_up_to_a_quarter() -> None:
    assert retry_delay_s(ProviderError("network", "x"), 2, 1.0) == 5.0


def test_what_the_server_asks_for_wins() -> None:
    error = ProviderError("rate_limit", "slow down", retry_after_s=17.0)
    assert retry_delay_s(error, 1, 0.9) == 17.0


def test_a_server_that_always_asks_for_too_little_is_not_stormed() -> None:
    error = ProviderError("rate_limit", "slow down", retry_after_s=1.0)
    delays = [retry_delay_s(error, attempt, 0.0) for attempt in range(1, 7)]
    assert delays == [1, 1, 1, 16, 32, 60]


@each_row(
    "kind",
    ["auth", "address", "not_found", "quota", "context_overflow", "content_filter", "bad_request"],
)
def test_what_waiting_does_not_mend_is_not_retried(kind: FaultKind) -> None:
    assert retry_delay_s(ProviderError(kind, "no", retry_after_s=1.0), 1, 0.0) is None


@pytest.mark.parametrize("kind", ["timeout", "crashed"])
def test_what_takes_long_or_is_paid_for_each_time_is_retried_once(kind: FaultKind) -> None:
    error = ProviderError(kind, "silent")
    delays = [retry_delay_s(error, attempt, 0.0, MAX_RETRIES) for attempt in (1, 2)]
    assert delays == [2, None]
    assert most_retries(error, MAX_RETRIES) == 1
    assert most_retries(ProviderError("server", "boom"), MAX_RETRIES) == MAX_RETRIES
