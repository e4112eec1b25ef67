"""The agent on an event loop of its own thread, so that the main one can wait for the person.

Reading a line blocks, and Ctrl+C ends that only in the main thread; what the agent does meanwhile
(a model that loads, a summary written ahead) must go on.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import aclosing
from types import TracebackType
from typing import Self, TypeVar

from agent_tui.events import AgentEvent

ValueT = TypeVar("ValueT")

TICK_S = 1.0
"""How long `AgentThread.watch` waits for an event before it says that none came."""


class AgentThread:
    """Runs what the main thread asks for; use it as a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agent", daemon=True)
        self._cancel_wait: Callable[[], object] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(_end_all_tasks(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def soon(self, function: Callable[[], object]) -> None:
        """Call `function` there; does not wait. May be called by a signal's handler."""
        self._loop.call_soon_threadsafe(function)

    def begin(self, work: Coroutine[None, None, ValueT]) -> Future[ValueT]:
        """Start `work` there; does not wait."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, work: Awaitable[ValueT]) -> ValueT:
        """Run `work` there and wait for its result; its error is raised here.

        Raises:
            KeyboardInterrupt: `stop_waiting` was called.
        """

        async def run() -> ValueT:
            return await work

        future = self.begin(run())
        self._cancel_wait = future.cancel
        try:
            return future.result()
        except CancelledError:
            raise KeyboardInterrupt from None
        finally:
            self._cancel_wait = None

    def call(self, function: Callable[[], ValueT]) -> ValueT:
        """Call `function` there and wait for its result; its error is raised here."""

        async def run() -> ValueT:
            return function()

        return self.wait(run())

    def stop_waiting(self) -> None:
        """Cancel what `wait` waits for, if it does."""
        if self._cancel_wait is not None:
            self._cancel_wait()

    def watch(
        self, start: Callable[[], AsyncGenerator[AgentEvent, None]]
    ) -> Iterator[AgentEvent | None]:
        """The events of an activity as they come; None where none came for `TICK_S`.

        An error of the activity is raised at the end.
        """
        arrived: queue.SimpleQueue[AgentEvent | Future[None]] = queue.SimpleQueue()

        async def pump() -> None:
            async with aclosing(start()) as events:
                async for event in events:
                    arrived.put(event)

        pumping = self.begin(pump())
        pumping.add_done_callback(arrived.put)
        while True:
            try:
                event = arrived.get(timeout=TICK_S)
            except queue.Empty:
                yield None
                continue
            if isinstance(event, Future):
                break
            yield event
        pumping.result()


async def _end_all_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()
