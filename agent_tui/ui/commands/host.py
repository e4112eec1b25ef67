"""What a slash command may use of the program around it."""

from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from agent_tui.events import AgentEvent
from agent_tui.ui.options import ModelSource

if TYPE_CHECKING:
    from textual.screen import Screen

    from agent_tui.agent.runtime import AgentRuntime
    from agent_tui.ui.commands.registry import CommandRegistry

ResultT = TypeVar("ResultT")


class CommandHost(Protocol):
    """The front end as commands see it."""

    @property
    def runtime(self) -> "AgentRuntime":
        """The conversation."""
        ...

    @property
    def models(self) -> ModelSource:
        """What is known about models."""
        ...

    @property
    def registry(self) -> "CommandRegistry":
        """All commands."""
        ...

    @property
    def theme_names(self) -> tuple[str, ...]:
        """Themes that can be chosen."""
        ...

    @property
    def theme_in_use(self) -> str:
        """The theme that is shown."""
        ...

    @property
    def last_reply(self) -> str:
        """The text of the model's last reply, empty if there is none."""
        ...

    def say(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """Put one line into the chat."""
        ...

    def show_events(self, events: Iterable[AgentEvent]) -> None:
        """Show what a quick change of the runtime returned."""
        ...

    def start(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Run an activity of the runtime and show its events."""
        ...

    def interrupt(self) -> bool:
        """Stop the running activity; false if none runs."""
        ...

    def queue(self, text: str) -> None:
        """Deliver `text` to the running turn, or send it if none runs."""
        ...

    async def ask(self, screen: "Screen[ResultT]") -> ResultT | None:
        """Show a screen and wait for its result; None if it was left without one."""
        ...

    async def set_up_model(self) -> bool:
        """Offer the ways to a first model; false where the program began with one."""
        ...

    def copy(self, text: str) -> str:
        """Copy to the clipboard; returns the way it was done, for the person."""
        ...

    def set_theme(self, name: str) -> None:
        """Use another theme."""
        ...

    def leave(self) -> None:
        """End the program."""
        ...
