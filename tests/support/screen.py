"""The whole screen under a pilot, and waiting for what it shows."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from textual.pilot import Pilot

from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.screen_options import load_options
from agent_tui.messages import AssistantMessage
from agent_tui.sessions.entries import MessageEntry
from agent_tui.ui.app import AgentApp
from agent_tui.ui.options import UiOptions
from agent_tui.ui.terminal.outcome import UiOutcome


class Screen:
    """The running app, and waiting for what it shows."""

    def __init__(self, app: AgentApp, pilot: Pilot[UiOutcome]) -> None:
        self.app = app
        self.pilot = pilot

    async def send(self, text: str) -> None:
        self.app.prompt.area.load_text(text)
        await self.pilot.pause()
        await self.pilot.press("enter")

    async def until(self, is_so: Callable[[], object]) -> None:
        for _ in range(12_000):
            if is_so():
                return
            await self.pilot.pause(0.02)
        raise AssertionError(f"it did not come to that; the chat is:\n{self.text}")

    async def until_shown(self, text: str) -> None:
        await self.until(lambda: text in self.text)

    async def approve(self) -> None:
        """Say yes to the next question; a key that came too early is typed again."""
        panel = self.app.view.widgets.approval
        await self.until(lambda: panel.request is not None)
        asked = panel.request
        while panel.request is asked:
            if panel.is_armed:
                await self.pilot.press("y")
            await self.pilot.pause(0.05)

    async def until_idle(self) -> None:
        await self.until(lambda: not self.app.controller.turns.is_running)

    @property
    def text(self) -> str:
        return self.app.view.widgets.transcript.to_text()

    @property
    def last_message(self) -> AssistantMessage:
        entries = [
            e
            for e in self.app.runtime.conversation.log.path_entries()
            if isinstance(e, MessageEntry)
        ]
        assert isinstance(entries[-1].message, AssistantMessage)
        return entries[-1].message


@asynccontextmanager
async def screen(*argv: str) -> AsyncGenerator[Screen, None]:
    def load() -> UiOptions:
        return replace(load_options(parse_arguments(argv)), approval_quiet_s=0.01)

    app = AgentApp(load)
    async with app.run_test(size=(100, 40)) as pilot:
        here = Screen(app, pilot)
        await here.until(lambda: app.loaded is not None)
        yield here
