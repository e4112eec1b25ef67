"""When a failed request is tried again, and after how long."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from agent_tui.providers.base import FaultKind, ProviderError

Sleep: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits for a number of seconds; a parameter wherever a retry waits, so that tests need not."""

MAX_RETRIES = 9
"""Some five minutes, which most outages of a service do not outlast."""

FALLBACK_RETRIES = 3
"""Where another model can go on instead."""

FIRST_CONTACT_RETRIES = 2
"""Where nothing listens at an address that gave no reply yet: it may be wrong, or be starting."""

_FIRST_DELAY_S = 2.0
_LONGEST_DELAY_S = 60.0
_BELIEVED_TIMES = 3
_JITTER_SHARE = 0.25
"""Up to a quarter longer, so that many clients of one server do not come back at once."""


_RETRIES_AT_MOST: Mapping[FaultKind, int] = MappingProxyType({"timeout": 1, "crashed": 1})
"""Of what takes long or costs money each time, and what waiting does little for."""


def most_retries(error: ProviderError, most: int = MAX_RETRIES) -> int:
    """How often a request that failed so is tried again.

    Args:
        error: Why it failed.
        most: How often at most.
    """
    if not error.is_retryable:
        return 0
    if error.is_unreached and not error.has_answered:
        return min(most, FIRST_CONTACT_RETRIES)
    return min(most, _RETRIES_AT_MOST.get(error.kind, most))


def retry_delay_s(
    error: ProviderError, attempt: int, jitter: float, most: int = MAX_RETRIES
) -> float | None:
    """Seconds to wait before retry number `attempt` (1 is the first); None: do not retry.

    What the server asked for (at most 60 s, see `faults.retry_after_s`), else 2, 4, 8 ... and
    at most 60 s. One that has asked for too little three times is waited for as long as one that
    asks for nothing.

    Args:
        error: Why the request failed.
        attempt: Which retry this would be.
        jitter: A random number from 0 to 1.
        most: How many retries there are.
    """
    if not 1 <= attempt <= most_retries(error, most):
        return None
    delay_s = _FIRST_DELAY_S * 2 ** (attempt - 1) * (1 + _JITTER_SHARE * jitter)
    delay_s = min(delay_s, _LONGEST_DELAY_S)
    if error.retry_after_s is None:
        return delay_s
    return max(error.retry_after_s, delay_s if attempt > _BELIEVED_TIMES else 0.0)
