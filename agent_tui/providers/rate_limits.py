"""What is left of a provider's limits, as its newest response stated it."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor
from typing import Final, Protocol, runtime_checkable

from agent_tui.providers.base import ModelRef
from agent_tui.providers.faults.reset_time import LONGEST_S, UNIT_S, limits_in, number_in

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


_PREFIX: Final = re.compile(r"(?:x|anthropic)-(?:ratelimit|codex)-?(?:unified-?)?")
_SLOT: Final = re.compile(r"-?(?:primary|secondary)$")
_WINDOW: Final = re.compile(r"(\d+)([hd])")
_MOST_NAME_CHARS: Final = 40
_MOST_LIMITS: Final = 16


def limits_stated(headers: Mapping[str, str], now: datetime) -> tuple[RateLimit, ...]:
    """The limits that a response states, with the share that is left of each.

    ``anthropic-ratelimit-X-{limit,remaining,reset}`` for requests and tokens
    (docs.claude.com/en/api/rate-limits), ``anthropic-ratelimit-unified-5h-{utilization,reset}`` and
    ``-7d-`` for subscriptions (github.com/anthropics/claude-code/issues/12829),
    ``x-ratelimit-{limit,remaining,reset}-X`` (platform.openai.com/docs/guides/rate-limits; Groq,
    xAI and others do the same), and ``x-codex-{primary,secondary}-{used-percent,window-minutes,
    reset-at}`` for ChatGPT plans (github.com/openai/codex, ``codex-api/src/rate_limits.rs``).

    Args:
        headers: Response headers by lower-case name.
        now: The present time, with its time zone.
    """
    found: dict[str, RateLimit] = {}
    for limit in limits_in(headers, now):
        if limit.left is None:
            continue
        name = _PREFIX.sub("", limit.name)
        window_s = 60 * (number_in(headers, f"{limit.name}-window-minutes") or 0.0)
        if window := _WINDOW.fullmatch(name):
            window_s = float(window[1]) * UNIT_S[window[2]]
        elif 0 < window_s <= LONGEST_S:  # of one model, if its name comes first
            name = f"{_SLOT.sub('', name)} {_window_name(window_s)}"
        name = name.replace("-", " ").strip()[:_MOST_NAME_CHARS]
        reset_at = None if limit.reset_s is None else now.timestamp() + limit.reset_s
        if len(found) < _MOST_LIMITS:
            known_s = window_s if window_s <= LONGEST_S else 0.0
            found[name] = RateLimit(name or "requests", limit.left, reset_at, known_s)
    return tuple(found.values())


def _window_name(seconds: float) -> str:
    """``5h``, ``7d``: the time that a limit is for."""
    days, hours = seconds / UNIT_S["d"], seconds / UNIT_S["h"]
    return f"{days:g}d" if days >= 2 else f"{hours:g}h"


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
