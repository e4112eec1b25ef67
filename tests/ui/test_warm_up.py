import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import ModelFileError
from agent_tui.features.tour.scripted import Reply
from agent_tui.ui.chat.lines_above_prompt import SHOWN_AFTER_S
from tests.support.fake_local import PULLED
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, asking, held, running_app
from tests.ui.scenes import StillClock


class Warming:
    """A model that loads until the test says how it went."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> None:
        await self.may_end.wait()
        if self.error is not None:
            raise self.error


@asynccontextmanager
async def of_this_machine(root: Path, *replies: Reply, **options: Any) -> AsyncGenerator[Ui]:
    """The app with a model of this machine, as it is pulled."""
    stage = Stage(root)
    runtime = asking(stage, *replies, model=PULLED)
    async with running_app(root, *replies, stage=stage, runtime=runtime, **options) as ui:
        yield ui


async def later(ui: Ui, clock: StillClock, seconds: float = SHOWN_AFTER_S) -> str:
    """The line above the prompt after that time."""
    clock.now += seconds
    await ui.settle()
    return ui.activity.render().plain.strip()


async def test_a_model_of_this_machine_is_said_to_load_until_it_is_there(tmp_path: Path):
    warm, clock = Warming(), StillClock()
    async with of_this_machine(tmp_path, warm=warm, clock=clock) as ui:
        assert await later(ui, clock, 0.0) == ""
        assert (await later(ui, clock, 2.0))[2:] == "Loading smollm2… · 2s"
        warm.may_end.set()
        await ui.settle()
        assert ui.activity.state is None


async def test_a_model_elsewhere_is_not_said_to_load(tmp_path: Path):
    warm, clock = Warming(), StillClock()
    async with running_app(tmp_path, warm=warm, clock=clock) as ui:
        assert await later(ui, clock, 2.0) == ""
        warm.may_end.set()


@pytest.mark.thorough
async def test_a_turn_takes_the_line_over_and_counts_its_own_time(tmp_path: Path):
    warm, clock = Warming(), StillClock()
    reply = held()
    async with of_this_machine(tmp_path, reply, warm=warm, clock=clock) as ui:
        await later(ui, clock, 9.0)
        await ui.send("hello")
        assert (await later(ui, clock, 1.0))[2:] == "Waiting for the model… · 1s · esc stops"
        warm.may_end.set()
        await ui.settle()
        assert ui.activity.state is not None
        await ui.finish()
        assert ui.activity.state is None


async def test_what_went_wrong_is_said_and_the_program_goes_on(tmp_path: Path):
    warm, clock = Warming(), StillClock()
    warm.error = ModelFileError("smollm2.gguf is gone.", "Pull it again.")
    async with of_this_machine(tmp_path, Reply(text="Hi."), warm=warm, clock=clock) as ui:
        warm.may_end.set()
        await ui.settle()
        assert ui.notices == ["smollm2.gguf is gone. Pull it again."]
        assert ui.activity.state is None
        await ui.send("hello")
        assert ui.sent == ["hello"]
        assert ui.answers == ["Hi."]
