"""One request while it is answered: its merged chunks, its waits, and its failure."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import TypeAlias

from agent_tui.providers.base import Chunk
from agent_tui.providers.faults.fault import Fault, fault_of
from agent_tui.providers.silence import Wait
from agent_tui.providers.transport.coalesce import (
    MAX_REPLY_CHARS,
    Coalescer,
    is_part_of_reply,
    size_of,
)
from agent_tui.providers.transport.listening import Listener
from agent_tui.providers.wires.base import EndlessReplyError, IdleTimeoutError

ServedEvent: TypeAlias = Chunk | Fault | Wait
"""An event of a request in progress. Nothing follows a `Fault`."""

_FLUSH_INTERVAL_S = 0.03
"""Seconds that deltas wait to be merged: 33 batches a second are smooth and cost little."""

_SIGN_INTERVAL_S = 2.0
"""Seconds between two `Wait` events of a request."""

_BUSY_S = 0.002
_REST_S = 0.001
"""Seconds without a turn of the loop after which a fast reply pauses: drawing a pressed key takes
many turns."""


async def serve(
    chunks: AsyncGenerator[Chunk, None],
    listener: Listener,
    send: Callable[[ServedEvent], None],
    secrets: Iterable[str],
) -> None:
    """Send what `chunks` yield until they end or fail; cancelling this closes them.

    Args:
        chunks: The reply, as a wire reads it.
        listener: Receives the bytes of the request.
        send: Called with each event, in this task's loop.
        secrets: Masked in the texts of a fault.
    """
    outbox = _Outbox(send)
    signs = WaitSigns(listener, send)
    try:
        async with aclosing(chunks):
            await _pass_on(chunks, listener, outbox)
    except asyncio.CancelledError:
        outbox.discard()
        raise
    except IdleTimeoutError as error:
        outbox.end(Fault("IdleTimeout", str(error)))
    except Exception as error:  # noqa: BLE001 - the pump: any error becomes data
        outbox.end(fault_of(error, secrets))
    else:
        outbox.end()
    finally:
        signs.stop()


async def _pass_on(
    chunks: AsyncGenerator[Chunk, None], listener: Listener, outbox: "_Outbox"
) -> None:
    received, pace = 0, _Pace()
    async for chunk in chunks:
        received += size_of(chunk)
        if received > MAX_REPLY_CHARS:
            raise EndlessReplyError(f"stopped after {MAX_REPLY_CHARS:,} characters")
        if is_part_of_reply(chunk):
            listener.understand()
        outbox.add(chunk)
        await pace.keep()


class _Pace:
    """Yields to the event loop when work has blocked it for a while."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._turned_at = self._loop.time()
        self._turn: asyncio.Handle | None = None

    async def keep(self) -> None:
        """Pause if the loop has not turned for too long."""
        now = self._loop.time()
        if self._turn is None:
            self._turned_at = now
            self._turn = self._loop.call_soon(self._note_turn)
        elif now - self._turned_at > _BUSY_S:
            await asyncio.sleep(_REST_S)

    def _note_turn(self) -> None:
        self._turn = None


class WaitSigns:
    """Sends how long the request has waited, every two seconds.

    A late call means that the whole program was stopped (Ctrl+Z) or delayed: the lost time does not
    count as silence of the server.
    """

    def __init__(self, listener: Listener, send: Callable[[Wait], None]) -> None:
        self._listener = listener
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._timer = self._next()

    def stop(self) -> None:
        """Stop sending."""
        self._timer.cancel()

    def _next(self) -> asyncio.TimerHandle:
        return self._loop.call_later(_SIGN_INTERVAL_S, self._tell)

    def _tell(self) -> None:
        self._listener.excuse(self._loop.time() - self._timer.when())
        self._send(self._listener.wait)
        self._timer = self._next()


class _Outbox:
    """Outgoing chunks; they wait up to `_FLUSH_INTERVAL_S` to be merged with similar ones."""

    def __init__(self, send: Callable[[ServedEvent], None]) -> None:
        self._send = send
        self._waiting = Coalescer()
        self._timer: asyncio.TimerHandle | None = None
        self._flushed_at = 0.0

    def add(self, chunk: Chunk) -> None:
        """Send `chunk` in its turn."""
        self._waiting.add(chunk)
        loop = asyncio.get_running_loop()
        if loop.time() - self._flushed_at >= _FLUSH_INTERVAL_S:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(_FLUSH_INTERVAL_S, self._flush)

    def end(self, fault: Fault | None = None) -> None:
        """Send what is waiting, then `fault`."""
        self._flush(is_end=True)
        if fault is not None:
            self._send(fault)

    def discard(self) -> None:
        """Discard what is waiting: nobody is listening any more."""
        self._waiting = Coalescer()
        if self._timer is not None:
            self._timer.cancel()

    def _flush(self, *, is_end: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for chunk in self._waiting.take(is_end=is_end):
            self._send(chunk)
        self._flushed_at = asyncio.get_running_loop().time()
