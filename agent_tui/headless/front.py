"""``-p`` as a `Front`: a command is run once, and what it tells is printed."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.front import CommandServices, FrontHelp, Level, UnansweredFront
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.commands.program import command_sections
from agent_tui.errors import UsageError
from agent_tui.events import AgentEvent, CompactionFailed, TurnFinished


class Printer(Protocol):
    """Where what happens is printed."""

    def see(self, event: AgentEvent) -> None:
        """Something happened."""
        ...

    def tell(self, text: str, level: Level) -> None:
        """A command says something."""
        ...


@dataclass(slots=True)
class HeadlessFront(UnansweredFront):
    """One command; nobody is there to answer.

    `attached` goes along with the first message that is sent, as what was piped in does.
    `problem` is what went wrong at last, empty for nothing.
    """

    nobody_answers = "-p cannot ask questions."
    instead = "Add your choice to the command, or start agent-tui without -p."

    runtime: AgentRuntime
    services: CommandServices
    registry: CommandRegistry
    printer: Printer
    attached: str = ""
    problem: str = field(default="", init=False)
    name: str = field(default="-p", init=False)
    screen: None = field(default=None, init=False)
    can_ask: bool = field(default=False, init=False)
    can_pick: bool = field(default=False, init=False)
    is_working: bool = field(default=False, init=False)

    def help(self) -> FrontHelp:
        """The commands that do something here."""
        return FrontHelp((), command_sections(self.registry, self))

    def say(self, text: str, level: Level = "info") -> None:
        """Print it; what is more than information is a failure."""
        if level != "info":
            self.problem = text
        self.printer.tell(text, level)

    def show_events(self, events: Iterable[AgentEvent]) -> None:
        """Print what a quick change of the runtime returned."""
        for event in events:
            self.printer.see(event)

    def show_thinking(self, is_shown: bool) -> None:
        """Thinking is never printed."""
        self.say("-p does not print thinking.", "warning" if is_shown else "info")

    async def edit_file(self, path: Path) -> bool:
        """Refuse: an editor needs a terminal."""
        raise UsageError(f"-p cannot open an editor for {path}.", "Start agent-tui without -p.")

    def warm_up(self) -> None:
        """The first request does it."""

    async def run(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Run an activity to its end and print its events."""
        async with aclosing(events) as stream:
            async for event in stream:
                self.printer.see(event)
                match event:
                    case CompactionFailed(message):
                        self.problem = message
                    case TurnFinished():
                        self.problem = event.error
                    case _:
                        pass

    async def send(self, text: str) -> None:
        """Run a turn to its end."""
        parts, self.attached = (text, self.attached), ""
        await self.run(self.runtime.submit("\n\n".join(filter(None, parts))))

    def interrupt(self) -> bool:
        """Nothing runs beside a command."""
        return False

    def leave(self) -> None:
        """The program ends after the command in any case."""
