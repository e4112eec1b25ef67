"""Hearing the bytes of a request, and giving it up when none come for too long."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from agent_tui.durations import shortest
from agent_tui.local_models.addresses import is_loopback
from agent_tui.providers.litellm.protocol import Alive
from agent_tui.providers.silence import SilenceLimits
from agent_tui.providers.wires.base import IdleTimeoutError

_T = TypeVar("_T")
_CLOSE_S: Final = 1.0
"""Seconds between two limits that are called the same: then no data is what there was."""


class Listener:
    """Knows when a request last heard a byte, and when a part of the reply.

    Needs a running event loop, whose clock it goes by.
    """

    def __init__(self, limits: SilenceLimits) -> None:
        self._limits = limits
        self._limit = limits.elsewhere
        self._byte_at = self._word_at = self._now
        self._waiting: asyncio.Timeout | None = None

    @property
    def state(self) -> Alive:
        """For how long nothing has been heard."""
        return Alive(word_s=self._now - self._word_at, byte_s=self._now - self._byte_at)

    def asking(self, url: str) -> None:
        """A request leaves for `url`, which says how long is waited for it."""
        self._limit = self._limits.here if is_loopback(url) else self._limits.elsewhere
        self.hear()

    def hear(self) -> None:
        """A byte came, whatever it says."""
        self._byte_at = self._now
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(self._deadline)

    def understand(self) -> None:
        """A part of the reply came."""
        self._byte_at = self._word_at = self._now

    async def in_time(self, awaitable: Awaitable[_T]) -> _T:
        """See `Link.in_time`.

        Raises:
            IdleTimeoutError: it took longer.
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


listening: Final[ContextVar[Listener | None]] = ContextVar("listening", default=None)
"""The listener of the request that the present task serves."""


def hear_every_client() -> None:
    """Have each HTTP client tell the present listener where it asks, and of the bytes that come.

    litellm's streams swallow comments and empty deltas before anybody sees them.
    """
    import httpx

    class HeardStream(httpx.AsyncByteStream):
        def __init__(self, stream: httpx.AsyncByteStream, listener: Listener) -> None:
            self._stream = stream
            self._listener = listener

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                self._listener.hear()
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    clients: Any = httpx.AsyncClient
    send = clients.send

    async def heard_send(
        client: httpx.AsyncClient, request: httpx.Request, **options: bool
    ) -> httpx.Response:
        listener = listening.get()
        if listener is not None:
            listener.asking(str(request.url))
        response = await send(client, request, **options)
        if listener is not None and isinstance(response.stream, httpx.AsyncByteStream):
            listener.hear()
            response.stream = HeardStream(response.stream, listener)
        return response

    clients.send = heard_send
