"""litellm's process, ``python -m agent_tui.features.litellm.worker``.

Commands arrive as lines on stdin, events leave as lines on the original stdout (see `protocol`);
whatever litellm prints goes to stderr. The process ends when stdin closes, so it never outlives its
parent.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine

from agent_tui.features.litellm.module import LiteLlm, listening, load_litellm
from agent_tui.features.litellm.protocol import (
    Cancel,
    Ended,
    Start,
    Warm,
    Warmed,
    WorkerEvent,
    event_line,
    parse_command,
)
from agent_tui.features.litellm.requests import litellm_chunks, rehearse
from agent_tui.providers.keys import secret_values
from agent_tui.providers.transport.serving import Listener, serve

_EXIT_GRACE_S = 2.0


def main() -> None:
    """Run until stdin closes."""
    events_fd = os.dup(1)
    os.dup2(2, 1)  # a library's stray print must not break the lines
    asyncio.run(_serve(events_fd))
    os._exit(0)  # library threads may still hang in a request


async def _serve(events_fd: int) -> None:
    commands: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read_commands() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(commands.put_nowait, line)
        loop.call_soon_threadsafe(commands.put_nowait, b"")
        time.sleep(_EXIT_GRACE_S)  # the parent is gone; an import may block the loop
        os._exit(0)

    def send(request_id: int, event: WorkerEvent) -> None:
        line = memoryview(event_line(request_id, event))
        while line:
            line = line[os.write(events_fd, line) :]

    threading.Thread(target=read_commands, daemon=True).start()
    worker = _Worker(send)
    while line := await commands.get():
        worker.obey(line)
    await worker.stop()


class _Worker:
    """Requests in progress, each a task."""

    def __init__(self, send: Callable[[int, WorkerEvent], None]) -> None:
        self._send = send
        self._requests: dict[int, asyncio.Task[None]] = {}
        self._loading: asyncio.Future[LiteLlm] | None = None

    def obey(self, line: bytes) -> None:
        """Start one command; returns at once."""
        command = parse_command(line)
        match command:
            case Warm():
                self._track(0, self._warm())
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

    async def _litellm(self) -> LiteLlm:
        """The litellm module; its import takes seconds."""
        if self._loading is None:
            self._loading = asyncio.get_running_loop().run_in_executor(None, load_litellm)
        return await asyncio.shield(self._loading)

    async def _warm(self) -> None:
        try:
            await rehearse(await self._litellm())
        except Exception as error:  # noqa: BLE001 - the pump: reported, never fatal
            self._send(0, Warmed(f"{type(error).__name__}: {error}"))
        else:
            self._send(0, Warmed())

    async def _run(self, start: Start) -> None:
        listener = Listener(start.silence)
        listening.set(listener)
        chunks = litellm_chunks(start.request, self._litellm, listener)
        secrets = secret_values(os.environ, (start.request.api_key_env,))
        try:
            await serve(chunks, listener, lambda event: self._send(start.id, event), secrets)
        finally:
            self._send(start.id, Ended())


if __name__ == "__main__":
    main()
