"""The provider process, ``python -m agent_tui.providers.litellm.worker``.

Commands come as lines on stdin, events go as lines to what was stdout (see `protocol`);
whatever litellm prints goes to stderr. The process ends when stdin closes, so it never
outlives its parent. How a model is spoken to is for its wire (`providers.wires`) to say; what a
wire needs, litellm above all, is imported when the first request by it comes.
"""

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine

from agent_tui.providers.keys import secret_values
from agent_tui.providers.litellm.coalesce import (
    MAX_REPLY_CHARS,
    Coalescer,
    is_part_of_reply,
    size_of,
)
from agent_tui.providers.litellm.exceptions import fault_of
from agent_tui.providers.litellm.link import RequestLink, Shared
from agent_tui.providers.litellm.listening import Listener, listening
from agent_tui.providers.litellm.protocol import (
    Alive,
    Cancel,
    Ended,
    Event,
    Fault,
    Start,
    Warm,
    Warmed,
    event_line,
    parse_command,
)
from agent_tui.providers.silence import NO_LIMIT, SilenceLimits
from agent_tui.providers.wires.base import EndlessReplyError, IdleTimeoutError
from agent_tui.providers.wires.table import wire_named

_FLUSH_INTERVAL_S = 0.03
"""Deltas wait this long for company: 33 lines a second are smooth and cost little."""

_SIGN_INTERVAL_S = 2.0
"""Between two signs of life of a request. Whoever is stopped for an hour must not be flooded."""

_EXIT_GRACE_S = 2.0


def main() -> None:
    """Run until stdin closes."""
    events_fd = os.dup(1)
    os.dup2(2, 1)  # a stray print of a library must not break the lines
    asyncio.run(_serve(events_fd))
    os._exit(0)  # threads of libraries may still hang in a request


async def _serve(events_fd: int) -> None:
    commands: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read_commands() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(commands.put_nowait, line)
        loop.call_soon_threadsafe(commands.put_nowait, b"")
        time.sleep(_EXIT_GRACE_S)  # the parent is gone; an import holding the loop must not stay
        os._exit(0)

    def send(request_id: int, event: Event) -> None:
        line = memoryview(event_line(request_id, event))
        while line:
            line = line[os.write(events_fd, line) :]

    threading.Thread(target=read_commands, daemon=True).start()
    worker = _Worker(send)
    while line := await commands.get():
        worker.obey(line)
    await worker.stop()


class _Worker:
    """Requests under way, each a task."""

    def __init__(self, send: Callable[[int, Event], None]) -> None:
        self._send = send
        self._requests: dict[int, asyncio.Task[None]] = {}
        self._shared = Shared()

    def obey(self, line: bytes) -> None:
        """Carry out one command; returns at once."""
        command = parse_command(line)
        match command:
            case Warm(wire):
                self._track(0, self._warm(wire))
            case Start():
                self._track(command.id, self._run(command))
            case Cancel():
                if (task := self._requests.get(command.id)) is not None:
                    task.cancel()

    async def stop(self) -> None:
        """Cancel everything, so that servers see their connections closed."""
        tasks = tuple(self._requests.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_EXIT_GRACE_S / 2)

    def _track(self, request_id: int, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._requests[request_id] = task
        task.add_done_callback(lambda _: self._requests.pop(request_id, None))

    async def _warm(self, wire: str) -> None:
        try:
            unlimited = SilenceLimits(NO_LIMIT, NO_LIMIT)
            await wire_named(wire).warm(RequestLink(self._shared, Listener(unlimited)))
        except Exception as error:  # noqa: BLE001 - the pump: reported, never fatal
            self._send(0, Warmed(f"{type(error).__name__}: {error}"))
        else:
            self._send(0, Warmed())

    async def _run(self, start: Start) -> None:
        outbox = _Outbox(lambda event: self._send(start.id, event))
        listener = Listener(start.silence)
        listening.set(listener)
        link = RequestLink(self._shared, listener)
        signs = asyncio.create_task(self._give_signs(start.id, listener))
        try:
            async with contextlib.aclosing(wire_named(start.wire).stream(start, link)) as chunks:
                received = 0
                async for chunk in chunks:
                    received += size_of(chunk)
                    if received > MAX_REPLY_CHARS:
                        stopped = f"stopped after {MAX_REPLY_CHARS:,} characters"
                        raise EndlessReplyError(stopped)
                    if is_part_of_reply(chunk):
                        listener.understand()
                    outbox.put(chunk)
        except asyncio.CancelledError:
            outbox.discard()
        except IdleTimeoutError as error:
            outbox.put(Fault("IdleTimeout", str(error)))
        except Exception as error:  # noqa: BLE001 - the pump: whatever it was becomes data
            outbox.put(fault_of(error, secret_values(os.environ, (start.api_key_env,))))
        finally:
            signs.cancel()
            outbox.put(Ended())

    async def _give_signs(self, request_id: int, listener: Listener) -> None:
        while True:
            await asyncio.sleep(_SIGN_INTERVAL_S)
            self._send(request_id, listener.state)


class _Outbox:
    """Events of one request on their way out; chunks wait up to `_FLUSH_INTERVAL_S`."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self._send = send
        self._waiting = Coalescer()
        self._timer: asyncio.TimerHandle | None = None
        self._flushed_at = 0.0

    def put(self, event: Event) -> None:
        """Send `event` in its turn; what is no chunk goes out at once with all before it."""
        if isinstance(event, Fault | Ended | Warmed | Alive):
            self._flush(is_end=True)
            self._send(event)
            return
        self._waiting.add(event)
        loop = asyncio.get_running_loop()
        if loop.time() - self._flushed_at >= _FLUSH_INTERVAL_S:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(_FLUSH_INTERVAL_S, self._flush)

    def discard(self) -> None:
        """Forget what waits: nobody listens any more."""
        self._waiting = Coalescer()

    def _flush(self, *, is_end: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for chunk in self._waiting.take(is_end=is_end):
            self._send(chunk)
        self._flushed_at = asyncio.get_running_loop().time()


if __name__ == "__main__":
    main()
