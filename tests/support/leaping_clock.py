"""Time for tests that wait: when a loop has nothing to do but wait, its clock leaps ahead.

What waits for a timer so takes no time and keeps its order. Work in threads is waited for.
"""

import asyncio
import selectors
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from textual import _time as textual_time

from agent_tui.ui.transcript import view


class LeapingClock:
    """Monotonic seconds that can be skipped, and how many threads are waited for."""

    def __init__(self, real_clock: Callable[[], float]) -> None:
        self._real_clock = real_clock
        self.skipped_s = 0.0
        self.busy_threads = 0

    def __call__(self) -> float:
        return self._real_clock() + self.skipped_s

    def watch(self, future: asyncio.Future[Any]) -> asyncio.Future[Any]:
        """Do not leap before `future`, the result of a thread, is there."""
        self.busy_threads += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _future: asyncio.Future[Any]) -> None:
        self.busy_threads -= 1


@contextmanager
def leaping_time() -> Generator[LeapingClock]:
    """Event loops made inside leap, and Textual's timers and the chat's flushes with them."""
    clock = LeapingClock(textual_time.get_time)
    run_in_executor = asyncio.BaseEventLoop.run_in_executor

    class LeapingSelector(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is None or timeout <= 0 or clock.busy_threads:
                return super().select(timeout)
            found = super().select(0)
            if not found:
                clock.skipped_s += timeout
            return found

    def watched(
        loop: asyncio.BaseEventLoop, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        return clock.watch(run_in_executor(loop, executor, func, *args))

    with (
        patch.object(selectors, "DefaultSelector", LeapingSelector),
        patch.object(asyncio.BaseEventLoop, "time", lambda _loop: clock()),
        patch.object(asyncio.BaseEventLoop, "run_in_executor", watched),
        patch.object(textual_time, "get_time", clock),
        patch.object(view, "perf_counter", clock),
    ):
        yield clock
