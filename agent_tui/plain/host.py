"""What commands may use of the front end around them."""

from collections.abc import AsyncGenerator, Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent, ApprovalRequest, ApprovalRequested
from agent_tui.plain.agent_thread import AgentThread
from agent_tui.plain.lines import LineWriter
from agent_tui.plain.narrator import Narrator
from agent_tui.plain.options import ModelSource
from agent_tui.plain.questions import Asker


@dataclass(slots=True)
class PlainHost:
    """The conversation and the ways to tell and to ask. Lives in the main thread.

    `agent` runs whatever the runtime does; `leaves` is set by who wants to end the program.
    """

    runtime: AgentRuntime
    models: ModelSource
    agent: AgentThread
    lines: LineWriter
    narrator: Narrator
    asker: Asker
    warm: Callable[[], "Future[None] | None"]
    leaves: bool = False
    _warming: "Future[None] | None" = field(default=None, init=False)

    def say(self, text: str) -> None:
        """Write a line, or several."""
        self.lines.line(text)

    def show(self, events: Iterable[AgentEvent]) -> None:
        """Tell what a quick change of the runtime returned."""
        for event in events:
            self.narrator.tell(event)

    def run(
        self, start: Callable[[], AsyncGenerator[AgentEvent, None]], *, typed: str = ""
    ) -> None:
        """Run an activity to its end, tell its events and ask what it asks.

        Args:
            start: Begins it.
            typed: The message that it sends, if the person has just typed it.
        """
        self.narrator.begin(typed)
        try:
            for event in self.agent.watch(start):
                if event is None:
                    self.narrator.tick()
                    continue
                self.narrator.tell(event)
                self.narrator.tick()
                if isinstance(event, ApprovalRequested):
                    self._ask(event.request)
        except AgentTuiError as error:
            self.narrator.end()
            self.say(f"Error: {error}")
        finally:
            self.narrator.end()

    def has_model(self) -> bool:
        """Whether a model is chosen; where none is, the person is told."""
        if not self.runtime.conversation.model.name:
            self.say("No model is chosen. /model chooses one.")
        return bool(self.runtime.conversation.model.name)

    def interrupt(self) -> None:
        """Stop what runs; may be called by a signal's handler."""
        if self.runtime.is_busy:
            self.agent.soon(self.runtime.abort)
        else:
            self.agent.stop_waiting()

    def refresh_usage(self) -> None:
        """Count the context again, for the next prompt."""
        self.show(self.agent.wait(self.runtime.refresh_usage()))

    def begin_warming(self) -> None:
        """Get the present model ready behind the person's back."""
        self._warming = self.warm()

    def tell_of_warming(self) -> None:
        """Say what went wrong there, once."""
        if self._warming is None or not self._warming.done():
            return
        failed, self._warming = self._warming.exception(), None
        if isinstance(failed, AgentTuiError):
            self.say(f"Error: {failed}")
        elif failed is not None:
            raise failed

    def _ask(self, request: ApprovalRequest) -> None:
        try:
            answer = self.asker.approval(request)
        except KeyboardInterrupt:
            self.lines.line()
            self.interrupt()
            return
        self.narrator.heard()
        self.agent.soon(lambda: self.runtime.pending_approvals.answer(request.id, answer))
