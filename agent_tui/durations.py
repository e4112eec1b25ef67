"""Durations as people read and write them."""

import re
import time
from typing import Final

_GIVEN: Final = r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[smh]?)"
_UNIT_S: Final = (("h", 3_600.0), ("m", 60.0), ("s", 1.0))


def format_duration(seconds: float) -> str:
    """``12s``, ``3m 05s``, ``1h 02m``."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    return f"{whole // 3600}h {whole // 60 % 60:02}m"


def format_remaining(seconds: float) -> str:
    """The remaining time, as `format_duration` writes it; at least a second."""
    return format_duration(max(round(seconds), 1))


def clock_time(moment_s: float, now_s: float) -> str:
    """A moment by the local clock: ``14:30``; with the day if that is not today.

    Args:
        moment_s: The moment, in seconds since 1970.
        now_s: The present time, in seconds since 1970.
    """
    moment, today = time.localtime(moment_s), time.localtime(now_s)
    is_today = (moment.tm_year, moment.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", moment)


def seconds_of(text: str) -> float | None:
    """The seconds that ``90``, ``90s``, ``10m`` or ``1.5h`` mean; None if invalid or 0."""
    given = re.fullmatch(_GIVEN, text.strip())
    if given is None:
        return None
    return float(given["number"]) * dict(_UNIT_S).get(given["unit"], 1.0) or None


def shortest(seconds: float) -> str:
    """`seconds` in the form of `seconds_of`, in the largest unit that divides them: ``10m``."""
    for unit, size_s in _UNIT_S:
        if seconds >= size_s and seconds % size_s == 0:
            return f"{seconds / size_s:g}{unit}"
    return f"{seconds:g}s"
