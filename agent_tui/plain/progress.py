"""What is said of long work: one short line now and then, if something has changed."""

from collections.abc import Callable

FIRST_AFTER_S = 5.0
"""Seconds of silence before something is said; twice as many before each further line."""

_LAST_AFTER_S = 40.0

WAITING = "Waiting for the model."


class Progress:
    """Knows what is going on, and when that is worth a line.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._now = ""
        self._said = ""
        self._pause_s = FIRST_AFTER_S
        self._quiet_since_s = clock()

    def doing(self, text: str) -> None:
        """Something goes on, or goes on otherwise; empty for nothing."""
        self._now = text

    def spoken(self) -> None:
        """Something else was written: the person knows that the program lives."""
        self._quiet_since_s = self._clock()
        self._pause_s = FIRST_AFTER_S

    def due(self) -> str:
        """What should be said now; empty for nothing."""
        if self._now in ("", self._said) or self._clock() - self._quiet_since_s < self._pause_s:
            return ""
        self._said = self._now
        self._quiet_since_s = self._clock()
        self._pause_s = min(self._pause_s * 2, _LAST_AFTER_S)
        return self._now
