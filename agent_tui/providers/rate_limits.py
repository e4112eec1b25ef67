"""What is left of a provider's limits, as its newest response stated it."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import floor
from typing import Final, Protocol, runtime_checkable

from agent_tui.providers.base import ModelRef

_PLAN_WINDOW_S: Final = 3_600.0
"""Limits of at least an hour are those of a plan; shorter ones only slow requests down."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One limit of an account.

    Attributes:
        name: What it limits, or the time that it is for: ``input tokens``, ``5h``.
        left: The share that is left, from 0 to 1.
        resets_at: When all of it is there again, in seconds since 1970; None if unknown.
        window_s: The time that it is for, in seconds; 0 if unknown.
    """

    name: str
    left: float
    resets_at: float | None = None
    window_s: float = 0.0

    @property
    def left_percent(self) -> int:
        """The share that is left in percent, rounded down: 0 only means that little is left."""
        return floor(round(self.left * 100, 6))

    @property
    def is_of_plan(self) -> bool:
        """Whether it limits a plan for hours or days."""
        return self.window_s >= _PLAN_WINDOW_S


@dataclass(frozen=True, slots=True)
class LimitsStated:
    """A response stated limits."""

    limits: tuple[RateLimit, ...]


class StatedLimits:
    """The newest limits of each service.

    Args:
        wall_clock: Returns seconds since 1970.
    """

    def __init__(self, wall_clock: Callable[[], float] = time.time) -> None:
        self._wall_clock = wall_clock
        self._known: dict[tuple[str, str], dict[str, RateLimit]] = {}

    def note(self, model: ModelRef, limits: Iterable[RateLimit]) -> None:
        """Note what the service of `model` states; what it does not mention stays."""
        known = self._known.setdefault((model.provider, model.base_url), {})
        known.update((limit.name, limit) for limit in limits)

    def of(self, model: ModelRef) -> tuple[RateLimit, ...]:
        """The limits of the service of `model` that have not reset since, the longest last."""
        now_s = self._wall_clock()
        known = self._known.get((model.provider, model.base_url), {})
        there = (one for one in known.values() if one.resets_at is None or one.resets_at > now_s)
        return tuple(sorted(there, key=lambda limit: limit.window_s))

    def forget(self, provider: str) -> None:
        """Forget the limits of `provider`: another account is used from now on."""
        self._known = {place: known for place, known in self._known.items() if place[0] != provider}


@runtime_checkable
class StatesLimits(Protocol):
    """A provider that knows the limits of services."""

    def rate_limits(self, model: ModelRef) -> Sequence[RateLimit]:
        """The limits of the service of `model`, as it stated them."""
        ...


def rate_limits(provider: object, model: ModelRef) -> Sequence[RateLimit]:
    """The limits of the service of `model`; empty if `provider` knows none."""
    return provider.rate_limits(model) if isinstance(provider, StatesLimits) else ()


def tightest_of_plan(limits: Iterable[RateLimit]) -> RateLimit | None:
    """The limit of a plan with the least left; None without one."""
    plan = (limit for limit in limits if limit.is_of_plan)
    return min(plan, key=lambda limit: limit.left, default=None)
