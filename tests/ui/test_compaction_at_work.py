"""The screen over the whole runtime: what is compacted, undone and counted is shown."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from agent_tui.config import CompactionSettings
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.providers.base import ModelRequest
from agent_tui.ui.app import AgentApp
from agent_tui.ui.options import UiOptions
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.transcript.blocks import NoticeBlock, SummaryBlock
from tests.support.models import listed_services
from tests.support.runtime import GOOD_SUMMARY, Stage
from tests.ui.app_support import wait_until

LOG_LINES = "".join(f"line {n}: nothing of note happened here\n" for n in range(440))
SETTINGS = CompactionSettings(protected_messages=2, keep_recent_tokens=500, background=False)


class Work:
    """A model that reads a long file nine times over, then says that it is done."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self, request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=GOOD_SUMMARY)
        self.reads += 1
        if self.reads <= 9:
            return Reply(
                tool_calls=(
                    call(f"c{self.reads}", "bash", command=f"head -{900 + self.reads} log.txt"),
                )
            )
        return Reply(text="Done.")


class Screen:
    """The app over the real runtime."""

    def __init__(self, app: AgentApp, pilot: Pilot[UiOutcome]) -> None:
        self.app, self.pilot = app, pilot

    async def until(self, is_so: Callable[[], object]) -> None:
        await wait_until(
            self.pilot,
            is_so,
            lambda: f"it did not come to that; the chat is:\n{self.chat.to_text()}",
        )

    async def send(self, text: str) -> None:
        self.app.prompt.area.load_text(text)
        await self.pilot.pause()
        await self.pilot.press("enter")
        await self.pilot.pause()
        await self.until(lambda: not self.app.controller.turns.is_running)

    @property
    def chat(self):
        return self.app.view.widgets.transcript

    @property
    def compactions(self) -> list[SummaryBlock]:
        return [block for block in self.chat.blocks if isinstance(block, SummaryBlock)]

    @property
    def notices(self) -> list[str]:
        return [block.text for block in self.chat.blocks if isinstance(block, NoticeBlock)]

    @property
    def last_notice(self) -> str:
        return self.notices[-1] if self.notices else ""

    @property
    def bar(self) -> str:
        assert self.app.status.fields is not None
        return self.app.status.fields.usage.label


@asynccontextmanager
async def at_work(folder: Path) -> AsyncGenerator[Screen, None]:
    """The app beside a file that fills a good part of the window."""
    stage = Stage(folder)
    (stage.workspace / "log.txt").write_text(LOG_LINES, encoding="utf-8")
    runtime = stage.runtime(Work(), window=46_000, compaction=SETTINGS)
    app = AgentApp(lambda: UiOptions(runtime, listed_services()))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Screen(app, pilot)
        await screen.until(lambda: app.loaded is not None)
        yield screen


async def test_a_turn_is_compacted_on_its_way_and_that_can_be_undone(tmp_path: Path):
    async with at_work(tmp_path) as screen:
        await screen.send("read the log nine times")
        assert screen.chat.last_reply_text == "Done."
        assert screen.compactions
        runtime = screen.app.runtime
        small = runtime.conversation.usage.used
        live = screen.compactions
        assert live[0].tokens_after < live[0].tokens_before
        assert "## Goal" in live[0].summary

        await screen.send("/uncompact")
        await screen.until(
            lambda: screen.last_notice.startswith("Compaction undone: the context is")
        )
        assert runtime.conversation.usage.used > small
        assert screen.bar == runtime.conversation.usage.label

        screen.app.view.redraw()
        assert screen.compactions == live
        assert screen.last_notice == "The compaction was undone."


async def test_compact_moves_the_bar_and_undoing_it_moves_it_back(tmp_path: Path):
    async with at_work(tmp_path) as screen:
        await screen.send("read the log nine times")
        before, path = screen.bar, screen.app.runtime.conversation.log.path
        await screen.send("/compact --force")
        assert screen.app.runtime.conversation.log.path != path
        assert screen.bar.startswith("[ctx: ~")
        assert screen.bar != before

        await screen.send("/uncompact")
        await screen.until(lambda: screen.last_notice.startswith("Compaction undone: back in"))
        assert screen.app.runtime.conversation.log.path == path
        assert screen.bar == before
