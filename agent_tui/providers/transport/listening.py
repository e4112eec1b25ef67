"""Tracks when bytes of a request arrive, and stops it when none come for too long."""

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from agent_tui.durations import shortest
from agent_tui.local_models.addresses import is_loopback
from agent_tui.providers.silence import SilenceLimits, Wait
from agent_tui.providers.wires.base import IdleTimeoutError

_T = TypeVar("_T")
_LATE_S: Final = 1.0
"""Seconds; a busy loop is less late. A later one was stopped, or its machine is overloaded."""

_CLOSE_S: Final = 1.0
"""Seconds within which two limits count as equal; the message then says that no data came."""


class Listener:
    """Records when a request last received a byte, and when part of the reply.

    Needs a running event loop; uses its clock.
    """

    def __init__(self, limits: SilenceLimits) -> None:
        self._limits = limits
        self._limit = limits.elsewhere
        self._byte_at = self._word_at = self._now
        self._waiting: asyncio.Timeout | None = None

    @property
    def wait(self) -> Wait:
        """How long nothing has been received."""
        return Wait(word_s=self._now - self._word_at, byte_s=self._now - self._byte_at)

    def asking(self, url: str) -> None:
        """Note that a request goes to `url`, which determines its limit."""
        self._limit = self._limits.here if is_loopback(url) else self._limits.elsewhere
        self.hear()

    def hear(self) -> None:
        """Note that a byte arrived, whatever it means."""
        self._byte_at = self._now
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(self._deadline)

    def understand(self) -> None:
        """Note that part of the reply arrived."""
        self._byte_at = self._word_at = self._now

    def excuse(self, late_s: float) -> None:
        """Allow for the program's own delay: bytes may have arrived unread in that time."""
        if late_s < _LATE_S:
            return
        self._byte_at += late_s
        self._word_at += late_s
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(self._deadline)

    async def in_time(self, awaitable: Awaitable[_T]) -> _T:
        """Wait for `awaitable` as long as the request may be silent, and stop it then.

        Raises:
            IdleTimeoutError: It took longer.
        """
        try:
            async with asyncio.timeout_at(self._deadline) as self._waiting:
                got = await awaitable
        except TimeoutError:
            if self._waiting is not None and self._waiting.expired():
                raise IdleTimeoutError(self._problem) from None
            raise
        finally:
            self._waiting = None
        self.hear()
        return got

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def _deadline(self) -> float | None:
        deadlines = (
            since + limit_s
            for since, limit_s in (
                (self._byte_at, self._limit.byte_s),
                (self._word_at, self._limit.word_s),
            )
            if limit_s is not None
        )
        return min(deadlines, default=None)

    @property
    def _problem(self) -> str:
        byte_s, word_s = self._limit.byte_s, self._limit.word_s
        if byte_s is not None and self._now >= self._byte_at + byte_s - _CLOSE_S:
            return f"no data for {shortest(byte_s)}"
        return f"only keep-alives for {shortest(word_s or 0)}"
