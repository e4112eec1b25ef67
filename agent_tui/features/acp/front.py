"""An editor as a `Front`: commands' texts become messages, their questions requests."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.front import (
    AnswerT,
    CommandServices,
    FrontHelp,
    Level,
    Pickable,
    Question,
    Showable,
    TextQuestion,
    UnansweredFront,
    page_lines,
)
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.commands.program import command_sections
from agent_tui.events import AgentEvent, TurnFinished
from agent_tui.features.acp.contents import fence, in_lines
from agent_tui.features.acp.questions import EditorForms


class Chooser(Protocol):
    """Asks the user a question; None if they leave it unanswered."""

    def __call__(self, question: Question[AnswerT], /) -> Awaitable[AnswerT | None]:
        """Returns the value of the answer."""
        ...


@dataclass(slots=True)
class AcpFront(UnansweredFront):
    """One conversation in an editor.

    Attributes:
        runtime: The conversation.
        services: The other services for commands.
        registry: The available commands.
        see: Takes every event.
        tell: Takes the texts of commands.
        choose: Asks the user a question.
        forms: Shows forms; None if the editor cannot.
        finished: How the newest turn ended; None before the first.
    """

    nobody_answers = "this editor cannot show lists."

    runtime: AgentRuntime
    services: CommandServices
    registry: CommandRegistry
    see: Callable[[AgentEvent], None]
    tell: Callable[[str], None]
    choose: Chooser
    forms: EditorForms | None = None
    finished: TurnFinished | None = field(default=None, init=False)
    name: str = field(default="acp", init=False)
    screen: None = field(default=None, init=False)
    can_ask: bool = field(default=True, init=False)

    @property
    def can_pick(self) -> bool:
        """Whether the editor shows forms."""
        return self.forms is not None

    @property
    def is_working(self) -> bool:
        """Whether a turn or other long work is running."""
        return self.runtime.is_busy

    def help(self) -> FrontHelp:
        """The commands that work here."""
        return FrontHelp((), command_sections(self.registry, self))

    def say(self, text: str, level: Level = "info") -> None:
        """Show a text in the chat."""
        self.tell(in_lines(text))

    async def ask(self, question: Question[AnswerT]) -> AnswerT | None:
        """Ask the user."""
        return await self.choose(question)

    async def ask_text(self, question: TextQuestion) -> str | None:
        """Ask the user for a line of text."""
        if self.forms is None:
            return await super(AcpFront, self).ask_text(question)
        return await self.forms.text(question)

    async def pick(self, wanted: Pickable[AnswerT]) -> AnswerT | str | None:
        """Let the user pick from a list."""
        if self.forms is None:
            return await super(AcpFront, self).pick(wanted)
        listing = await wanted.listing()
        if not listing.choices and not listing.typed:
            self.say(listing.empty)
            return None
        return await self.forms.pick(listing)

    async def show(self, shown: Showable) -> None:
        """Show a page with its lines and columns."""
        self.tell(fence("\n".join(page_lines(await shown.page()))))

    def show_events(self, events: Iterable[AgentEvent]) -> None:
        """Show the events that a quick change of the runtime returned."""
        for event in events:
            self.see(event)

    def show_thinking(self, is_shown: bool) -> None:
        """Say that the editor decides about this."""
        self.say("Your editor decides whether to show thinking.")

    async def edit_file(self, path: Path) -> bool:
        """Ask the user to open the file in the editor."""
        self.say(f"Open it in your editor: {path}")
        return False

    def warm_up(self) -> None:
        """Does nothing: the first request prepares the model."""

    async def run(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Run an activity to its end and show its events."""
        async with aclosing(events) as stream:
            async for event in stream:
                self.see(event)
                if isinstance(event, TurnFinished):
                    self.finished = event

    async def send(self, text: str) -> None:
        """Run a turn to its end."""
        await self.run(self.runtime.submit(text))

    def interrupt(self) -> bool:
        """Stop the running work; false if nothing runs."""
        is_running = self.runtime.is_busy
        self.runtime.abort()
        return is_running

    def leave(self) -> None:
        """Does nothing: the editor closes the session."""
