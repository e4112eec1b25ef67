"""Runs the runtime's activities one after the other and shows their events."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_tui.agent.mentions import attach_mentions
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent, Notice, QueueChanged
from agent_tui.ui.event_view import EventView

if TYPE_CHECKING:
    from agent_tui.agent.runtime import AgentRuntime


@dataclass(frozen=True, slots=True)
class DriverHooks:
    """What the driver needs of the app.

    `start_work` runs a coroutine in a task the app owns; `give_back` puts messages that were
    not delivered back into the prompt.
    """

    start_work: Callable[[Coroutine[None, None, None]], object]
    give_back: Callable[[tuple[str, ...]], None]


class TurnDriver:
    """One activity at a time; what is typed meanwhile is queued and sent after it."""

    def __init__(self, runtime: "AgentRuntime", view: EventView, hooks: DriverHooks) -> None:
        self._runtime = runtime
        self._view = view
        self._hooks = hooks
        self._running = False
        self._interrupted = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_running(self) -> bool:
        """Whether an activity runs or is about to."""
        return self._running

    def send(self, text: str) -> None:
        """Send a message with the files it mentions; queue it while something runs."""
        if self._running:
            self.queue(text)
        else:
            self._launch(self._send(text))

    def queue(self, text: str) -> None:
        """Deliver `text` before the next request of the running turn, or send it."""
        if self._running:
            self._show(self._runtime.enqueue(text))
        else:
            self.send(text)

    def start(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Run an activity; refused while another one runs."""
        if self._running:
            self._show((Notice("warning", "Something is running. Stop it first with Esc."),))
        else:
            self._launch(self._watch(events))

    def interrupt(self) -> bool:
        """Stop the running activity; false if there is none. Queued messages come back."""
        if not self._running:
            return False
        self._interrupted = True
        self._runtime.abort()
        return True

    def take_back_queue(self) -> bool:
        """Put queued messages back into the prompt; false if there are none."""
        texts = self._runtime.take_back_queue()
        if texts:
            self._show((QueueChanged(()),))
            self._hooks.give_back(texts)
        return bool(texts)

    async def stop(self) -> None:
        """Interrupt and wait until nothing runs any more."""
        self.interrupt()
        await self._idle.wait()

    def _launch(self, work: Coroutine[None, None, None]) -> None:
        self._running = True
        self._interrupted = False
        self._idle.clear()
        self._hooks.start_work(self._run(work))

    async def _run(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except AgentTuiError as error:
            self._show((Notice("error", str(error)),))
        finally:
            self._running = False
            self._idle.set()
            self._view.idle()
        self._go_on()

    async def _send(self, text: str) -> None:
        runtime = self._runtime
        whole = await asyncio.to_thread(
            attach_mentions, text, runtime.cwd, runtime.model_info.window
        )
        if not self._interrupted:
            await self._watch(runtime.submit(whole))

    async def _watch(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        self._view.begin()
        async with aclosing(events) as stream:
            async for event in stream:
                self._view.show(event)

    def _go_on(self) -> None:
        """Send what was queued; after an interruption or an error give it back instead."""
        if not self._runtime.queued:
            return
        if self._interrupted or self._view.last_outcome == "error":
            self.take_back_queue()
            return
        texts = self._runtime.take_back_queue()
        self._show((QueueChanged(()),))
        self.send("\n\n".join(texts))

    def _show(self, events: tuple[AgentEvent, ...]) -> None:
        for event in events:
            self._view.show(event)
