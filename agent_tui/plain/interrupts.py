"""Ctrl+C and the signals that end a program, each where it can do no harm."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Ctrl+C ends the reading of a line with `KeyboardInterrupt`; at work it only calls `stop`.

    A program that is told to end does so with `SystemExit`, so that what is open is closed.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._is_reading = False

    @contextmanager
    def caught(self) -> Generator[None]:
        """In here signals are handled this way; where one is ignored, it stays so."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
        caught = [number for number, handler in before.items() if handler != signal.SIG_IGN]
        for number in caught:
            signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number in caught:
                signal.signal(number, before[number])

    @contextmanager
    def reading(self) -> Generator[None]:
        """In here Ctrl+C is a `KeyboardInterrupt`."""
        self._is_reading = True
        try:
            yield
        finally:
            self._is_reading = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            raise SystemExit(128 + number)
        if self._is_reading:
            raise KeyboardInterrupt
        self._stop()
