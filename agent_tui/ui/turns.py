"""Runs the runtime's activities one after the other and hands their events to the view."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.user_message import NewMessage, image_refusal
from agent_tui.drafts.draft import Draft, join_drafts
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent, Notice, UserMessageAdded
from agent_tui.messages import ImageContent


@dataclass(frozen=True, slots=True)
class _Gap:
    """A place between two activities, which one change waits for and then holds."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)


StartWork: TypeAlias = Callable[[Coroutine[None, None, None]], object]
"""Runs a coroutine in a task of the app's."""


class EventSink(Protocol):
    """Where events are shown; `EventView` on the screen."""

    @property
    def last_outcome(self) -> str:
        """How the last turn of the present activity ended; empty before."""
        ...

    def begin(self, label: str) -> None:
        """Prepare for an activity, which `label` names until its events do."""
        ...

    def show(self, event: AgentEvent) -> None:
        """Show an event."""
        ...

    def idle(self) -> None:
        """Reset after an activity, however it ended."""
        ...


class TurnRunner:
    """One activity at a time; what is typed meanwhile is queued and sent after it.

    Args:
        runtime: The conversation.
        view: Shows what happens.
        start_work: Runs an activity in a task the app owns.
        give_back: Puts messages that were not delivered back into the prompt.
    """

    def __init__(
        self,
        runtime: AgentRuntime,
        view: EventSink,
        start_work: StartWork,
        give_back: Callable[[Sequence[Draft]], None],
    ) -> None:
        self._runtime = runtime
        self._view = view
        self._start_work = start_work
        self._give_back = give_back
        self._running = False
        self._has_begun = False
        self._interrupted = False
        self._waiting: list[tuple[str, tuple[ImageContent, ...], Draft]] = []
        self._sending: Draft | None = None
        self._gaps: list[_Gap] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._when_idle: Callable[[], object] = lambda: None

    def listen(self, when_idle: Callable[[], object]) -> None:
        """Call `when_idle` after each activity that no other one follows."""
        self._when_idle = when_idle

    @property
    def is_running(self) -> bool:
        """Whether an activity runs or is about to."""
        return self._running

    @property
    def is_stopping(self) -> bool:
        """Whether what runs was interrupted and has not come to its end."""
        return self._running and self._interrupted

    @property
    def waiting(self) -> tuple[Draft, ...]:
        """The messages that were sent or queued and are not part of the session yet."""
        sent = () if self._sending is None else (self._sending,)
        return (*sent, *map(self._draft_of, self._runtime.conversation.queue.messages))

    def send(self, draft: Draft) -> None:
        """Send a message with its pastes and images; queue it while something runs."""
        if self._running:
            self.queue(draft)
        else:
            self._sending = draft
            self._launch(partial(self._send, draft))

    def queue(self, draft: Draft) -> None:
        """Deliver a message before the next request of the running turn, or send it."""
        if self._running:
            text, images, typed = self._outgoing(draft)
            self._waiting.append((text, images, draft))
            self._show(self._runtime.enqueue(text, images, typed, shown=draft.text))
        else:
            self.send(draft)

    def run_command(self, draft: Draft) -> None:
        """Run what the user typed after ``!``; queue it while something runs."""
        text = draft.full_text
        if self._running:
            self._waiting.append((text, (), draft))
            self._show(self._runtime.enqueue(text, shown=draft.text, is_command=True))
        else:
            in_context = not text.startswith("!!")
            self.start(self._runtime.run_bash(text.lstrip("!").strip(), in_context=in_context))

    def start(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Run an activity; refused while another one runs."""
        if self._running:
            self._show((Notice("warning", "Something is running. Stop it first with Esc."),))
        else:
            self._launch(partial(self._watch, events))

    @asynccontextmanager
    async def after_present(self) -> AsyncGenerator[None]:
        """Begin the block when what runs has ended; what is queued is sent after the block."""
        if not self._running:
            yield
            return
        gap = _Gap()
        self._gaps.append(gap)
        try:
            await gap.opened.wait()
            yield
        finally:
            gap.closed.set()

    async def _let_changes_through(self) -> None:
        while self._gaps:
            gap = self._gaps.pop(0)
            gap.opened.set()
            await gap.closed.wait()

    def interrupt(self) -> bool:
        """Stop the running activity and side questions; false if there are none.

        Queued messages come back.
        """
        if not (self._running or self._runtime.is_busy_beside):
            return False
        self._interrupted = True
        self._runtime.abort()
        return True

    def take_back_queue(self) -> bool:
        """Put queued messages back into the prompt; false if there are none."""
        drafts = self._dequeue(self._runtime.conversation.queue.take_all())
        if drafts:
            self._give_back(drafts)
        return bool(drafts)

    async def stop(self) -> None:
        """Interrupt as the program ends, and wait until nothing runs any more.

        What was sent and did not arrive stays in `waiting`.
        """
        if self._running:
            self._interrupted = True
            self._runtime.abort(ends_wait=False)
            await asyncio.sleep(0)  # what was launched begins here, if nothing cancelled its task
            if not self._has_begun:
                self._running = False
                self._idle.set()
        await self._idle.wait()

    def _launch(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        self._running = True
        self._has_begun = False
        self._interrupted = False
        self._idle.clear()
        self._start_work(self._run(work))

    async def _run(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        self._has_begun = True
        try:
            try:
                await work()
            except AgentTuiError as error:
                self._show((Notice("error", str(error)),))
            await self._let_changes_through()
        finally:
            self._running = False
            self._idle.set()
            self._view.idle()
        self._go_on()
        if not self._running:
            self._when_idle()

    async def _send(self, draft: Draft) -> None:
        """Send a message; one that did not become part of the session comes back."""
        try:
            if not self._interrupted:
                sent = self._runtime.submit(*self._outgoing(draft))
                await self._watch(sent, "Reading your message")
        except AgentTuiError:
            self._return_sent()
            raise
        self._return_sent()

    def _return_sent(self) -> None:
        """Put the sent message back into the prompt, unless the session has it."""
        draft, self._sending = self._sending, None
        if draft is not None:
            self._give_back((draft,))

    async def _watch(
        self, events: AsyncGenerator[AgentEvent, None], label: str = "Working"
    ) -> None:
        """Show what happens, and note when the session has the message that was sent."""
        self._view.begin(label)
        async with aclosing(events) as stream:
            async for event in stream:
                if isinstance(event, UserMessageAdded):
                    self._sending = None
                self._view.show(event)

    def _outgoing(
        self, draft: Draft
    ) -> tuple[str, tuple[ImageContent, ...], tuple[str, ...] | None]:
        """Text, images and typed parts for the present model; paths of images it does not see."""
        images = draft.sent_images
        refusal = image_refusal(self._runtime.conversation.model_info) if images else ""
        if refusal:
            self._show((Notice("info", refusal),))
        if refusal or not images:
            images, draft = (), draft.with_paths()
        sent = tuple(ImageContent(data=image.data, mime_type=image.mime_type) for image in images)
        return draft.sent_text, sent, draft.typed_parts

    def _dequeue(self, taken: Sequence[NewMessage]) -> list[Draft]:
        queue = self._runtime.conversation.queue
        if taken:
            self._show((queue.change,))
        drafts = [self._draft_of(message) for message in taken]
        if not queue.messages:
            self._waiting.clear()
        return drafts

    def _draft_of(self, message: NewMessage) -> Draft:
        for text, images, draft in self._waiting:
            if (text, images) == (message.text, message.images):
                return draft
        return Draft(message.text)

    def _go_on(self) -> None:
        """Send what was queued; after an interruption or an error give it back instead."""
        if self._interrupted or self._view.last_outcome == "error":
            self.take_back_queue()
        elif taken := self._runtime.conversation.queue.take_next():
            draft = join_drafts(self._dequeue(taken))
            (self.run_command if taken[0].is_command else self.send)(draft)

    def _show(self, events: Sequence[AgentEvent]) -> None:
        for event in events:
            self._view.show(event)
