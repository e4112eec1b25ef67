"""What slash commands can do with the app."""

import os
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from textual.app import SuspendNotSupported
from textual.screen import Screen

from agent_tui.events import AgentEvent, Notice
from agent_tui.ui.breakpoints import size_classes
from agent_tui.ui.clipboard import copy_text
from agent_tui.ui.commands import CommandRegistry
from agent_tui.ui.options import ModelSource
from agent_tui.ui.outcome import UiOutcome
from agent_tui.ui.prompt.pastes import Draft
from agent_tui.ui.theme import own_themes

if TYPE_CHECKING:
    from agent_tui.agent.runtime import AgentRuntime
    from agent_tui.config.editor import SettingsEditor
    from agent_tui.tools.mcp.hub import McpHub
    from agent_tui.ui.app import AgentApp
    from agent_tui.ui.known_models import KnownModels

ResultT = TypeVar("ResultT")


class AppHost:
    """The `CommandHost` that stands before the app."""

    def __init__(self, app: "AgentApp") -> None:
        self._app = app

    @property
    def runtime(self) -> "AgentRuntime":
        """The conversation."""
        return self._app.runtime

    @property
    def models(self) -> ModelSource:
        """What is known about models."""
        return self._app.ready.options.models

    @property
    def servers(self) -> "McpHub | None":
        """The MCP servers."""
        return self._app.ready.options.servers

    def write_letter(self, letter: str) -> None:
        """Put a letter into the prompt."""
        self._app.prompt.area.insert(letter)

    @property
    def registry(self) -> CommandRegistry:
        """All commands."""
        return self._app.ready.registry

    @property
    def settings_editor(self) -> "SettingsEditor | None":
        """Where settings are read and changed."""
        return self._app.ready.options.settings_editor

    @property
    def known_models(self) -> "KnownModels":
        """Which models were chosen before, and which the person marked."""
        return self._app.ready.options.known_models

    @property
    def theme_names(self) -> tuple[str, ...]:
        """Our themes, then Textual's."""
        own = [theme.name for theme in own_themes()]
        return (*own, *sorted(name for name in self._app.available_themes if name not in own))

    @property
    def theme_in_use(self) -> str:
        """The theme that is shown."""
        return self._app.theme

    @property
    def last_reply(self) -> str:
        """The text of the model's last reply."""
        return self._app.ready.chat.last_reply_text

    def say(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """Put one line into the chat."""
        self._app.ready.view.show(Notice(level, text))

    def show_events(self, events: Iterable[AgentEvent]) -> None:
        """Show what a quick change of the runtime returned."""
        for event in events:
            self._app.ready.view.show(event)
        self._app.refresh_status()

    def start(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Run an activity of the runtime."""
        self._app.ready.turns.start(events)

    def interrupt(self) -> bool:
        """Stop the running activity; false if none runs."""
        return self._app.ready.turns.interrupt()

    def queue(self, text: str) -> None:
        """Deliver `text` to the running turn, or send it."""
        self._app.ready.turns.queue(Draft(text))

    async def ask(self, screen: Screen[ResultT]) -> ResultT | None:
        """Show a screen and wait for its result."""
        screen.add_class(*size_classes(self._app.size))
        return await self._app.push_screen_wait(screen)

    async def set_up_model(self) -> bool:
        """Offer the ways to a first model; false where the program began with one."""
        from agent_tui.ui.start import choose_model

        if self._app.ready.options.first_run is None:
            return False
        await choose_model(self._app)
        return True

    def copy(self, text: str) -> str:
        """Copy to the clipboard and say how."""
        return copy_text(text, os.environ, self._app.copy_to_clipboard)

    async def find(self, text: str) -> None:
        """Search the chat for `text`, or ask for it."""
        from agent_tui.ui.find import open_find

        await open_find(self._app, text)

    def set_theme(self, name: str) -> None:
        """Use another theme."""
        self._app.theme = name

    @property
    def is_mouse_on(self) -> bool:
        """Whether clicks and drags come to the program."""
        return self._app.guest.is_mouse_on

    def set_mouse(self, on: bool) -> None:
        """Take the mouse, or leave it to the terminal."""
        self._app.guest.switch_mouse(on)
        self._app.refresh_status()

    def edit_file(self, path: Path) -> bool:
        """Let the person's editor change a file."""
        from agent_tui.ui.prompt.editor import edit_file

        return edit_file(self._app, path)

    def show_scrollback(self) -> None:
        """Write the whole conversation into the terminal's scrollback, and wait there."""
        from agent_tui.ui.scrollback import show_whole, wait_for_enter

        text = self._app.ready.chat.to_text()
        if not text:
            self.say("Nothing was said yet.")
            return
        try:
            show_whole(self._app, text, wait_for_enter)
        except SuspendNotSupported:
            self.say("This terminal has no screen to go back to. /export writes a file.", "warning")

    def leave(self) -> None:
        """End the program; while a turn runs, ask first."""
        if self._app.ready.turns.is_running:
            self._app.run_worker(self._ask_and_leave(), group="leave", exclusive=True)
        else:
            self._app.exit(UiOutcome())

    async def _ask_and_leave(self) -> None:
        from agent_tui.ui.screens.confirm import ConfirmScreen

        question = ConfirmScreen(
            "Leave while something runs?", "It is stopped; what it did so far is kept."
        )
        if await self.ask(question):
            self._app.exit(UiOutcome())
