"""The screen over the whole runtime while a loop runs, and when its session is opened again."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.providers.base import ModelRequest, ProviderError
from agent_tui.ui.app import AgentApp
from agent_tui.ui.chat.history_blocks import blocks_of
from agent_tui.ui.chat.lines_above_prompt import activity_text
from agent_tui.ui.options import UiOptions
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    DividerBlock,
    SummaryBlock,
    UserBlock,
    WelcomeBlock,
)
from tests.support.models import listed_services
from tests.support.runtime import Stage
from tests.ui.test_compaction_at_work import Screen

SUMMARY = "Both files are sound."
LONG = "I looked at every line of it with care and found nothing wrong. " * 20
LOOP = "/loop over a.py,b.py compress Check {item}."
LABEL = "loop 2x: Check {item}."


class Model:
    """Long answers, good summaries; a reply to `held` waits for `gate`."""

    def __init__(self, held: str = "", *failures: ProviderError) -> None:
        self.held = held
        self.gate = asyncio.Event()
        self.failures = list(failures)

    def __call__(self, request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            failed = self.failures.pop() if self.failures else None
            return Reply(error=failed) if failed else Reply(text=SUMMARY)
        is_held = self.held and self.held in request.messages[-1].text
        return Reply(text=LONG, gate=self.gate if is_held else None)


@asynccontextmanager
async def at_work(folder: Path, model: Model) -> AsyncGenerator[Screen, None]:
    runtime = Stage(folder).runtime(ScriptedProvider(model))
    app = AgentApp(lambda: UiOptions(runtime, listed_services()))
    async with app.run_test(size=(90, 30)) as pilot:
        screen = Screen(app, pilot)
        await screen.until(lambda: app.loaded is not None)
        yield screen


def marks(screen: Screen) -> list[str]:
    return [block.title for block in screen.chat.blocks if isinstance(block, DividerBlock)]


async def test_a_loop_stands_between_its_marks_with_its_summary_to_unfold(tmp_path: Path):
    async with at_work(tmp_path, Model()) as screen:
        await screen.send(LOOP)
        await screen.until(lambda: len(marks(screen)) == 2)
        assert marks(screen) == [f"start: {LABEL}", f"end: {LABEL}"]
        blocks = [block for block in screen.chat.blocks if not isinstance(block, WelcomeBlock)]
        kinds = [type(block) for block in blocks]
        assert kinds == [
            DividerBlock,
            *(UserBlock, AssistantBlock) * 2,
            SummaryBlock,
            DividerBlock,
        ]
        (summed_up,) = screen.compactions
        assert summed_up.summary == SUMMARY
        assert summed_up.note.startswith("summarised (")
        assert screen.bar == screen.app.runtime.conversation.usage.label
        live = [block for block in blocks if not isinstance(block, AssistantBlock)]
        again = blocks_of(screen.app.runtime.conversation.log.path_entries())
        assert [block for block in again if not isinstance(block, AssistantBlock)] == live


async def test_the_round_is_shown_no_second_loop_begins_and_esc_drops_the_rest(tmp_path: Path):
    model = Model(held="b.py")
    async with at_work(tmp_path, model) as screen:
        screen.app.prompt.area.load_text(LOOP)
        await screen.pilot.pause()
        await screen.pilot.press("enter")
        activity = screen.app.view.widgets.activity
        await screen.until(lambda: activity.state and activity.state.round == "loop 2/2")
        assert activity.state is not None
        assert "… · loop 2/2 · 0s" in activity_text(activity.state, activity.state.started_at)
        await screen.until(lambda: len(screen.app.runtime.conversation.log.path_entries()) > 5)

        screen.app.prompt.area.load_text("/loop 2 again")
        await screen.pilot.pause()
        await screen.pilot.press("enter")
        await screen.until(lambda: "Cannot start a loop" in screen.last_notice)

        await screen.pilot.press("escape")
        await screen.until(lambda: not screen.app.controller.turns.is_running)
        loop, stopped = screen.notices[-2:]
        assert "stopped in round 2 of 2. The other rounds are dropped" in loop
        assert stopped == "Stopped. /retry continues."
        assert marks(screen) == [f"start: {LABEL}", f"end: {LABEL}"]
        assert activity.state is None
        assert not screen.compactions


async def test_a_failed_summary_can_be_made_with_retry(tmp_path: Path):
    model = Model("", ProviderError("auth", "The key is wrong."))
    async with at_work(tmp_path, model) as screen:
        await screen.send(LOOP)
        assert screen.last_notice == "The key is wrong. /retry continues."
        assert marks(screen) == [f"start: {LABEL}"]
        await screen.send("/retry")
        await screen.until(lambda: len(marks(screen)) == 2)
        assert [block.summary for block in screen.compactions] == [SUMMARY]

        await screen.send("/uncompact")
        await screen.until(lambda: screen.last_notice.startswith("Compaction undone"))
        assert LONG in [m.text for m in screen.app.runtime.conversation.request().messages]


async def test_what_is_no_loop_is_explained_and_sends_nothing(tmp_path: Path):
    async with at_work(tmp_path, Model()) as screen:
        await screen.send("/loop fix it")
        await screen.until(lambda: "/loop 3 PROMPT" in screen.last_notice)
        assert screen.app.runtime.conversation.log.path_entries() == ()
