"""An editor as a `Front`: what commands tell becomes messages, what they ask, requests."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agent_tui.acp.contents import fenced, in_lines
from agent_tui.acp.questions import EditorForms
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


class Chooser(Protocol):
    """Puts a question to the person; None where they leave it."""

    def __call__(self, question: Question[AnswerT], /) -> Awaitable[AnswerT | None]:
        """The value of the answer."""
        ...


@dataclass(slots=True)
class AcpFront(UnansweredFront):
    """One conversation in an editor.

    Attributes:
        runtime: The conversation.
        services: What else commands work on.
        registry: The commands there are.
        see: Takes every event.
        tell: Takes what commands say.
        choose: Has the person answer a question.
        forms: Has them fill forms; None where the editor shows none.
        finished: How the newest turn ended; None before there was one.
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
        """Whether a turn runs, or something else that takes its time."""
        return self.runtime.is_busy

    def help(self) -> FrontHelp:
        """The commands that do something here."""
        return FrontHelp((), command_sections(self.registry, self))

    def say(self, text: str, level: Level = "info") -> None:
        """Tell it in the chat."""
        self.tell(in_lines(text))

    async def ask(self, question: Question[AnswerT]) -> AnswerT | None:
        """Have the person decide."""
        return await self.choose(question)

    async def ask_text(self, question: TextQuestion) -> str | None:
        """Have the person type a line."""
        if self.forms is None:
            return await super(AcpFront, self).ask_text(question)
        return await self.forms.text(question)

    async def pick(self, wanted: Pickable[AnswerT]) -> AnswerT | str | None:
        """Have the person pick from a list."""
        if self.forms is None:
            return await super(AcpFront, self).pick(wanted)
        listing = await wanted.listing()
        if not listing.choices and not listing.typed:
            self.say(listing.empty)
            return None
        return await self.forms.pick(listing)

    async def show(self, shown: Showable) -> None:
        """A page, in its own lines and columns."""
        self.tell(fenced("\n".join(page_lines(await shown.page()))))

    def show_events(self, events: Iterable[AgentEvent]) -> None:
        """Tell what a quick change of the runtime returned."""
        for event in events:
            self.see(event)

    def show_thinking(self, is_shown: bool) -> None:
        """The editor decides what it shows."""
        self.say("Your editor decides whether to show thinking.")

    async def edit_file(self, path: Path) -> bool:
        """The person has an editor at hand."""
        self.say(f"Open it in your editor: {path}")
        return False

    def warm_up(self) -> None:
        """The first request does it."""

    async def run(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Run an activity to its end and tell its events."""
        async with aclosing(events) as stream:
            async for event in stream:
                self.see(event)
                if isinstance(event, TurnFinished):
                    self.finished = event

    async def send(self, text: str) -> None:
        """Run a turn to its end."""
        await self.run(self.runtime.submit(text))

    def interrupt(self) -> bool:
        """Stop what runs; false if nothing does."""
        is_running = self.runtime.is_busy
        self.runtime.abort()
        return is_running

    def leave(self) -> None:
        """The editor closes the session."""
