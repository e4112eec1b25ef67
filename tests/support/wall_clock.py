"""A wall clock that moves only when the program sleeps."""

from collections.abc import Callable

START_S = 1_772_366_400.0
"""Where the clock starts, in seconds since 1970: noon in UTC on 1 March 2026."""


class SleptClock:
    """The clock, and a sleep that is over at once.

    Args:
        suspended_s: Seconds that the machine is suspended for during the first sleep.
    """

    def __init__(self, suspended_s: float = 0.0) -> None:
        self.now_s = START_S
        self.slept_s: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None
        self._suspended_s = suspended_s

    def read(self) -> float:
        """The present time, in seconds since 1970."""
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """Advance the clock by `seconds`."""
        self.slept_s.append(seconds)
        self.now_s += seconds + self._suspended_s
        self._suspended_s = 0.0
        self.on_sleep()
