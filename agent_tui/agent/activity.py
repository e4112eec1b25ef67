"""One running piece of work whose events can be watched and which can be aborted."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeAlias

from agent_tui.events import AgentEvent, TurnFinished, TurnRecorded

Emit: TypeAlias = Callable[[AgentEvent], None]


class LastTurn:
    """Passes the events of one of several turns on, except its `TurnFinished`.

    Attributes:
        event: How the turn ended; None before.
        took_s: Seconds that it took without waiting for the user or for a limit; 0 if it was too
            short to record.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.event: TurnFinished | None = None
        self.took_s = 0.0

    def emit(self, event: AgentEvent) -> None:
        """Handle one event of the turn."""
        if isinstance(event, TurnFinished):
            self.event = event
            return
        if isinstance(event, TurnRecorded):
            self.took_s = event.facts.elapsed_ms / 1_000
        self._emit(event)


class Activity:
    """Runs `work` in its own task and passes its events on in order.

    Work emits an event only after it has written the matching entry to the session file. The work
    waits for the reader of its events only before it asks the user, so an abort always interrupts
    one of its own awaits.
    There it records what it has, and the events of that recording are still delivered.
    """

    def __init__(self, work: Callable[[Emit], Awaitable[object]]) -> None:
        self._work = work
        self._events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._is_aborted = False

    def abort(self) -> None:
        """Cancel the work, at most once; the reader of `events` still gets its last events."""
        if self._task is not None and not self._is_aborted:
            self._is_aborted = True
            # One step later: work that is cancelled before its first step cannot record anything.
            self._task.get_loop().call_soon(self._task.cancel)

    async def stop(self) -> None:
        """Abort and wait until the work has recorded its end."""
        self.abort()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def wait_until_told(self) -> None:
        """Wait until the reader has handled every event that was emitted so far."""
        await self._events.join()

    async def events(self) -> AsyncGenerator[AgentEvent, None]:
        """Start the work and yield the events it emits until it ends.

        Closing this generator, or cancelling the task that iterates it, aborts the work and
        returns when it has recorded what it had. An error of the work is raised at the end.
        """
        self._task = task = asyncio.create_task(self._run())
        try:
            while (event := await self._events.get()) is not None:
                yield event
                self._events.task_done()
            await task
        finally:
            await self.stop()

    async def _run(self) -> None:
        try:
            await self._work(self._events.put_nowait)
        except asyncio.CancelledError:
            pass  # `stop` has already waited for this task to record its end
        finally:
            self._events.put_nowait(None)
