from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.commands.core.registry import load_commands
from agent_tui.drafts.draft import Draft
from agent_tui.drafts.history import PromptHistory
from agent_tui.ui.prompt import prompt
from agent_tui.ui.prompt.completion import PromptSources
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.prompt.prompt import Prompt

UI = Path(prompt.__file__).parents[1]
FILES = ["README.md", "src/app.py", "src/main.py", "notes/a plan.md"]


class PromptApp(App[None]):
    """A prompt below an empty chat; remembers what it said."""

    CSS_PATH: ClassVar[CSSPathType | None] = [UI / "app.tcss", UI / "chat.tcss"]

    def __init__(self, history: PromptHistory, *, is_ready: bool = True) -> None:
        super().__init__()
        self.folder = Path()
        self.file_names = FILES
        self.image_refusal = ""
        self.resources: Mapping[str, str] = {}
        self.sent: list[Draft] = []
        self.refused: list[str] = []
        self.history = history
        self.is_ready = is_ready
        self.sources = PromptSources(
            registry=load_commands(),
            completions=lambda name: ("off", "low", "high") if name == "thinking" else (),
            files=FileIndex(
                lambda: self.folder, lambda _root, _limit: self.file_names, lambda: 0.0
            ),
            history=history,
            image_refusal=lambda: self.image_refusal,
            resources=self._resources,
        )
        self.prompt = Prompt()

    async def _resources(self, typed: str) -> Mapping[str, str]:
        servers = {"docs:": "resources of an MCP server"} if self.resources else {}
        return self.resources if ":" in typed else servers

    def compose(self) -> ComposeResult:
        chat = Static("chat")
        chat.styles.height = "1fr"
        yield chat
        yield self.prompt

    def on_mount(self) -> None:
        if self.is_ready:
            self.prompt.attach(self.sources)
        self.prompt.focus()

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        self.sent.append(event.draft)
        self.history.add(event.draft)

    def on_prompt_refused(self, event: Prompt.Refused) -> None:
        self.refused.append(event.reason)

    @property
    def text(self) -> str:
        return self.prompt.area.text

    @property
    def labels(self) -> list[str]:
        menu = self.prompt.menu
        return [item.label for item in menu.items] if menu.is_open else []


@pytest.fixture
async def pilot() -> AsyncGenerator[Pilot[None], None]:
    app = PromptApp(PromptHistory(None))
    async with app.run_test(size=(80, 24)) as running:
        yield running


@pytest.fixture
def app(pilot: Pilot[None]) -> PromptApp:
    assert isinstance(pilot.app, PromptApp)
    return pilot.app
