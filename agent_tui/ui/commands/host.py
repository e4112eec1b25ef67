"""What a slash command may use of the program around it."""

from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from agent_tui.events import AgentEvent
from agent_tui.ui.known_models import KnownModels
from agent_tui.ui.options import ModelSource

if TYPE_CHECKING:
    from textual.screen import Screen

    from agent_tui.agent.runtime import AgentRuntime
    from agent_tui.config.editor import SettingsEditor
    from agent_tui.tools.mcp.hub import McpHub
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
    def servers(self) -> "McpHub | None":
        """The MCP servers; None where there can be none."""
        ...

    def write_letter(self, letter: str) -> None:
        """Put a letter that was typed somewhere else into the prompt."""
        ...

    @property
    def known_models(self) -> KnownModels:
        """Which models were chosen before, and which the person marked."""
        ...

    @property
    def registry(self) -> "CommandRegistry":
        """All commands."""
        ...

    @property
    def settings_editor(self) -> "SettingsEditor | None":
        """Where settings are read and changed; None where there are none."""
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

    async def find(self, text: str) -> None:
        """Search the chat for `text`, or ask for it."""
        ...

    def set_theme(self, name: str) -> None:
        """Use another theme."""
        ...

    @property
    def is_mouse_on(self) -> bool:
        """Whether clicks and drags come to the program."""
        ...

    def set_mouse(self, on: bool) -> None:
        """Take the mouse, or leave it to the terminal."""
        ...

    def edit_file(self, path: Path) -> bool:
        """Let the person's editor change a file; false, with the reason said, if it did not."""
        ...

    def show_scrollback(self) -> None:
        """Write the whole conversation into the terminal's scrollback, and wait there."""
        ...

    def leave(self) -> None:
        """End the program."""
        ...
