"""The limits of requests: how often and when a failed one is retried."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from agent_tui.providers.base import FaultKind, ProviderError


class BudgetSpent(ProviderError):
    """Nothing was sent: a limit on cost is reached, or the model's price is unknown."""

    def __init__(self, why: str, advice: str = "") -> None:
        super().__init__("quota", why, advice)


Sleep: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits for a number of seconds; a parameter, so that tests need not wait."""

MAX_RETRIES = 9
"""Retries for about five minutes in all, which few outages outlast."""

FALLBACK_RETRIES = 3
"""Retries if another model can take over."""

FIRST_CONTACT_RETRIES = 2
"""Retries if no server is known at the address: it is wrong, or the server is starting."""

RETRIED_S = 300.0
"""About how long all retries of a request take, in seconds."""

LONGEST_DELAY_S = 60.0
"""The longest wait before a retry, in seconds. A server that asks for more is not asked again."""

_FIRST_DELAY_S = 2.0
_BELIEVED_TIMES = 3
_JITTER_SHARE = 0.25
"""Up to a quarter longer, so that a server's clients do not all return at once."""


_RETRIES_AT_MOST: Mapping[FaultKind, int] = MappingProxyType({"timeout": 1, "crashed": 1})
"""Limits for kinds that take long or cost money each time, or where waiting helps little."""


def most_retries(error: ProviderError, most: int = MAX_RETRIES) -> int:
    """How often to retry a request that failed this way.

    Args:
        error: Why it failed.
        most: The limit on retries.
    """
    if not error.is_retryable:
        return 0
    if error.is_unproven and not error.has_answered:
        return min(most, FIRST_CONTACT_RETRIES)
    return min(most, _RETRIES_AT_MOST.get(error.kind, most))


def retry_delay_s(
    error: ProviderError,
    attempt: int,
    jitter: float,
    most: int = MAX_RETRIES,
    before: ProviderError | None = None,
) -> float | None:
    """Seconds to wait before retry number `attempt` (1 is the first); None: do not retry.

    What the server asks for, else 2, 4, 8 ... up to 60 s. After three retries the wait is never
    shorter than without the server's request. There is no retry if the server asks for more than 60
    s; `agent.turn.limit_wait` waits longer. Nor is there one if the reply breaks as it did before.

    Args:
        error: Why the request failed.
        attempt: The number of this retry.
        jitter: A random number from 0 to 1.
        most: The limit on retries.
        before: Why the previous try failed.
    """
    if error.repeats(before) or not 1 <= attempt <= most_retries(error, most):
        return None
    delay_s = _FIRST_DELAY_S * 2 ** (attempt - 1) * (1 + _JITTER_SHARE * jitter)
    delay_s = min(delay_s, LONGEST_DELAY_S)
    if error.retry_after_s is None:
        return delay_s
    if error.retry_after_s > LONGEST_DELAY_S:
        return None
    return max(error.retry_after_s, delay_s if attempt > _BELIEVED_TIMES else 0.0)
