"""``-p`` as a `Front`: runs one command and prints its output."""

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
    """Prints events and texts."""

    def see(self, event: AgentEvent) -> None:
        """Handle an event."""
        ...

    def tell(self, text: str, level: Level) -> None:
        """Handle a text of a command."""
        ...


@dataclass(slots=True)
class HeadlessFront(UnansweredFront):
    """Runs one command; nobody can answer questions.

    `attached` is added to the first message sent, like piped input. `problem` is the last error, or
    empty.
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
        """The commands that work here."""
        return FrontHelp((), command_sections(self.registry, self))

    def say(self, text: str, level: Level = "info") -> None:
        """Print a text; a warning or an error counts as a failure."""
        if level != "info":
            self.problem = text
        self.printer.tell(text, level)

    def show_events(self, events: Iterable[AgentEvent]) -> None:
        """Print the events that a quick change of the runtime returned."""
        for event in events:
            self.printer.see(event)

    def show_thinking(self, is_shown: bool) -> None:
        """Say that thinking is never printed."""
        self.say("-p does not print thinking.", "warning" if is_shown else "info")

    async def edit_file(self, path: Path) -> bool:
        """Refuse: an editor needs a terminal."""
        raise UsageError(f"-p cannot open an editor for {path}.", "Start agent-tui without -p.")

    def warm_up(self) -> None:
        """Does nothing: the first request prepares the model."""

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
        """Returns false: nothing runs beside a command."""
        return False

    def leave(self) -> None:
        """Does nothing: the program ends after the command anyway."""
