"""Runs the agent on an event loop in its own thread, so that the main thread can wait for input.

Reading a line blocks, and Ctrl+C interrupts that only in the main thread; the agent's work (loading
a model, writing a summary in advance) must continue meanwhile.
"""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Self, TypeVar

from agent_tui.errors import AgentTuiError

ValueT = TypeVar("ValueT")

_TICK_S = 1.0
"""Seconds without work after which `AgentThread.wait` calls `on_quiet`."""


class AgentThread:
    """Runs what the main thread asks for; use it as a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agent", daemon=True)
        self._for_main: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._cancel_wait: Callable[[], object] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        asyncio.run_coroutine_threadsafe(_end_all_tasks(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def soon(self, function: Callable[[], object]) -> None:
        """Call `function` in that thread without waiting. Signal handlers may use it."""
        self._loop.call_soon_threadsafe(function)

    def begin(self, work: Coroutine[None, None, ValueT]) -> Future[ValueT]:
        """Start `work` in that thread without waiting."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(
        self, work: Awaitable[ValueT], on_quiet: Callable[[], object] = lambda: None
    ) -> ValueT:
        """Run `work` in that thread and wait for its result; its error is raised here.

        Meanwhile, functions passed to `in_main` run here, one at a time.

        Args:
            work: What to wait for.
            on_quiet: Called whenever there was no work for `_TICK_S`.

        Raises:
            KeyboardInterrupt: `stop_waiting` was called.
        """

        async def run() -> ValueT:
            return await work

        future = self.begin(run())
        future.add_done_callback(lambda _: self._for_main.put(_nothing))
        self._cancel_wait = future.cancel
        try:
            while not (future.done() and self._for_main.empty()):
                try:
                    function = self._for_main.get(timeout=_TICK_S)
                except queue.Empty:
                    on_quiet()
                else:
                    function()
            return future.result()
        except CancelledError:
            raise KeyboardInterrupt from None
        finally:
            future.cancel()
            self._cancel_wait = None

    def in_main(self, function: Callable[[], object]) -> None:
        """Call `function` in the main thread: at once if this is it, else without waiting."""
        if threading.current_thread() is self._thread:
            self._for_main.put(function)
        else:
            function()

    async def call_in_main(self, function: Callable[[], ValueT]) -> ValueT:
        """Returns the result of `function` in the main thread; call it on the event loop."""
        answer: Future[ValueT] = Future()

        def ask() -> None:
            try:
                answer.set_result(function())
            except AgentTuiError as error:
                answer.set_exception(error)

        self._for_main.put(ask)
        return await asyncio.wrap_future(answer)

    def stop_waiting(self) -> None:
        """Cancel what `wait` is waiting for, if anything."""
        if self._cancel_wait is not None:
            self._cancel_wait()


def _nothing() -> None:
    pass


async def _end_all_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()
