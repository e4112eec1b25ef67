"""One request while it is answered: its merged chunks, its waits, and its failure."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, TypeAlias, TypeVar

from agent_tui.config.model_addresses import is_loopback
from agent_tui.durations import shortest
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    NoticeChunk,
    RestartChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.providers.faults.fault import Fault, fault_of
from agent_tui.providers.rate_limits import LimitsStated, limits_stated
from agent_tui.providers.silence import SilenceLimits, Wait
from agent_tui.providers.wires.base import EndlessReplyError, IdleTimeoutError
from agent_tui.text import repair_text

_T = TypeVar("_T")
_LATE_S: Final = 1.0
"""Seconds; a busy loop is less late. A later one was stopped, or its machine is overloaded."""

_CLOSE_S: Final = 1.0
"""Seconds within which two limits count as equal; the message then says that no data came."""


class Listener:
    """Records when a request last received a byte, and when part of the reply.

    Needs a running event loop; uses its clock.

    Attributes:
        tell_limits: Called with the limits that a response states, if it states any.
    """

    def __init__(self, limits: SilenceLimits) -> None:
        self._limits = limits
        self._limit = limits.elsewhere
        self._byte_at = self._word_at = self._now
        self._waiting: asyncio.Timeout | None = None
        self.tell_limits: Callable[[LimitsStated], object] = id

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

    def read_headers(self, headers: Mapping[str, str]) -> None:
        """Pass on the limits that the headers of a response state; names in lower case."""
        if limits := limits_stated(headers, datetime.now(UTC)):
            self.tell_limits(LimitsStated(limits))

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


MAX_REPLY_CHARS = 20_000_000
"""Characters; no model writes more: many times the longest reply."""

MAX_PIECE_CHARS = 32_000
"""Keeps a JSON line far below the reader's limit, whatever one delta holds."""


_CALL_CHARS = 100


def size_of(chunk: Chunk) -> int:
    """Characters that the model wrote, plus a constant for each call."""
    match chunk:
        case TextChunk(text, signature) | ThinkingChunk(text, signature):
            return len(text) + len(signature or "")
        case ToolCallChunk(arguments_json=text, name=name, signature=signature):
            return len(text) + len(signature) + (_CALL_CHARS if name else 0)
        case _:
            return 0


def is_part_of_reply(chunk: Chunk) -> bool:
    """Whether `chunk` holds part of a reply, or says that the model is thinking.

    An empty delta does not: a server can send those forever.
    """
    return size_of(chunk) > 0 or isinstance(chunk, ThinkingChunk)


class Coalescer:
    """Collects chunks between two flushes; adjacent chunks of one kind are merged.

    Lone surrogates are repaired. The first half of a pair is held back until the second arrives, as
    servers split text in the middle of a character. Of several usages the last is kept, and does
    not part the text that it comes between.
    """

    def __init__(self) -> None:
        self._ready: list[Chunk] = []
        self._last: Chunk | None = None
        self._usage: UsageChunk | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return self._last is None and self._usage is None and not self._ready

    def add(self, chunk: Chunk) -> None:
        """Take in the next chunk."""
        if isinstance(chunk, UsageChunk):
            self._usage = chunk
            return
        if self._usage is not None and isinstance(chunk, FinishChunk | RestartChunk):
            usage, self._usage = self._usage, None
            self._push(usage)
        self._push(chunk)

    def _push(self, chunk: Chunk) -> None:
        if self._last is None:
            self._last = chunk
        elif (merged := _merge(self._last, chunk)) is not None:
            self._last = merged
        else:
            self._ready.append(self._last)
            self._last = chunk

    def take(self, *, is_end: bool = False) -> tuple[Chunk, ...]:
        """The chunks since the last call, repaired and in pieces of bounded size."""
        chunks = self._ready
        self._ready = []
        if self._last is not None:
            kept_back = None if is_end else _half_character(self._last)
            if kept_back is None:
                chunks.append(self._last)
                self._last = None
            else:
                whole, self._last = kept_back
                chunks.append(whole)
        if self._usage is not None:
            chunks.append(self._usage)
            self._usage = None
        return tuple(piece for chunk in chunks for piece in _pieces(chunk))


def _merge(first: Chunk, second: Chunk) -> Chunk | None:
    match first, second:
        case TextChunk(signature=None), TextChunk():
            return TextChunk(first.text + second.text, second.signature)
        case ThinkingChunk(signature=None, redacted=False), ThinkingChunk(redacted=False):
            return ThinkingChunk(first.text + second.text, second.signature)
        case ToolCallChunk(), ToolCallChunk(id="", name="") if first.index == second.index:
            return replace(
                first,
                arguments_json=first.arguments_json + second.arguments_json,
                signature=second.signature or first.signature,
            )
        case _:
            return None


def _half_character(chunk: Chunk) -> tuple[Chunk, Chunk] | None:
    """`chunk` without half a surrogate pair at its end, and that half; None if there is none."""
    match chunk:
        case TextChunk(text, None) | ThinkingChunk(text, None, False) if _ends_in_half(text):
            return replace(chunk, text=text[:-1]), replace(chunk, text=text[-1])
        case ToolCallChunk(index, _, _, text) if _ends_in_half(text):
            return replace(chunk, arguments_json=text[:-1]), ToolCallChunk(index, "", "", text[-1])
        case _:
            return None


def _ends_in_half(text: str) -> bool:
    return "\ud800" <= text[-1:] <= "\udbff"


def _pieces(chunk: Chunk) -> Iterator[Chunk]:
    match chunk:
        case TextChunk(text, signature) | ThinkingChunk(text, signature):
            *parts, last = _split_text(text)
            for part in parts:
                yield replace(chunk, text=part, signature=None)
            if last or signature is not None:
                yield replace(chunk, text=last)
        case ToolCallChunk(index, _, _, text):
            first, *parts = _split_text(text)
            yield replace(chunk, arguments_json=first)
            for part in parts:
                yield ToolCallChunk(index, "", "", part)
        case UsageChunk() | FinishChunk() | RestartChunk() | NoticeChunk():
            yield chunk


def _split_text(text: str) -> list[str]:
    """`text`, repaired, in pieces; at least one, which may be empty."""
    repaired = repair_text(text)
    starts = range(0, len(repaired), MAX_PIECE_CHARS)
    return [repaired[start : start + MAX_PIECE_CHARS] for start in starts] or [""]


ServedEvent: TypeAlias = Chunk | Fault | Wait | LimitsStated
"""An event of a request in progress. Nothing follows a `Fault`."""

_FLUSH_INTERVAL_S = 0.03
"""Seconds that deltas wait to be merged: 33 batches a second are smooth and cost little."""

_SIGN_INTERVAL_S = 2.0
"""Seconds between two `Wait` events of a request."""

_BUSY_S = 0.001
"""Seconds without a turn of the loop after which a fast reply lets others have one."""

_OTHERS_WORK_S = 0.00015
_REST_S = 0.001
"""If others used more than so many seconds of that turn, they get so many more: drawing a pressed
key takes many turns. An idle loop turns in some microseconds, and a reply does not wait then."""


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
    listener.tell_limits = send
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
    """Yields to the event loop when work has blocked it for a while, and rests if it is needed.

    A rest after each millisecond takes 1.3 to 1.5 times as long for 10,000 tokens at once; without
    any, a pressed key waits 2 to 3 times as long while they arrive.
    """

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
            await asyncio.sleep(0)
            if self._loop.time() - now > _OTHERS_WORK_S:
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
