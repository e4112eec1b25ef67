"""The whole app over a conversation whose events the test gives."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from textual.pilot import Pilot

from agent_tui.ui.app import AgentApp
from agent_tui.ui.options import UiOptions
from agent_tui.ui.status.status_bar import StatusFields
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.transcript import NoticeBlock
from tests.support.fake_runtime import FakeModels, FakeRuntime

NAMES = {" ": "space", "/": "slash", "@": "at", "\\": "backslash", "!": "exclamation_mark"}


@dataclass
class Ui:
    """A running app and the conversation behind it."""

    app: AgentApp
    runtime: FakeRuntime
    pilot: Pilot[UiOutcome]

    async def write(self, text: str) -> None:
        await self.pilot.press(*(NAMES.get(letter, letter) for letter in text))
        await self.pilot.pause()

    async def send(self, text: str) -> None:
        """Put `text` into the prompt and press Enter."""
        self.app.prompt.area.load_text(text)
        self.app.prompt.area.move_cursor(self.app.prompt.area.document.end)
        await self.pilot.pause()
        self.app.prompt.close_menu()
        await self.pilot.press("enter")
        await self.settle()

    async def settle(self) -> None:
        """Until what was started has shown itself."""
        for _ in range(4):
            await self.pilot.pause()

    async def until(self, is_so) -> None:
        for _ in range(200):
            if is_so():
                return
            await self.pilot.pause(0.01)
        raise AssertionError("it did not come to that")

    @property
    def text(self) -> str:
        return self.app.prompt.area.text

    @property
    def notices(self) -> list[str]:
        return [
            block.text
            for block in self.app.view.widgets.transcript.blocks
            if isinstance(block, NoticeBlock)
        ]

    @property
    def status(self) -> StatusFields:
        assert self.app.status.fields is not None
        return self.app.status.fields

    @property
    def toasts(self) -> list[str]:
        return [notification.message for notification in self.app._notifications]


@asynccontextmanager
async def running_app(
    root: Path,
    *,
    size: tuple[int, int] = (80, 24),
    runtime: FakeRuntime | None = None,
    **changes: object,
) -> AsyncGenerator[Ui, None]:
    """The app on a terminal of `size`; `changes` are fields of `UiOptions`."""
    fake = runtime or FakeRuntime(root)
    options = replace(UiOptions(fake.real, FakeModels()), **changes)
    app = AgentApp(lambda: options)
    async with app.run_test(size=size) as pilot:
        ui = Ui(app, fake, pilot)
        await ui.until(lambda: app.loaded is not None)
        await ui.until(lambda: not [w for w in app.workers if w.group == "start"] or changes)
        await ui.settle()
        yield ui
