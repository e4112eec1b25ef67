import asyncio
from pathlib import Path

from agent_tui.errors import ModelFileError
from agent_tui.providers.base import ModelRef
from agent_tui.ui.activity_line import SHOWN_AFTER_S
from tests.support.fake_local import PULLED
from tests.support.fake_runtime import FakeRuntime
from tests.ui.app_support import Ui, running_app
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


def with_model(root: Path, model: ModelRef) -> FakeRuntime:
    runtime = FakeRuntime(root)
    runtime.set_model(model)
    return runtime


async def later(ui: Ui, seconds: float = SHOWN_AFTER_S) -> str:
    """The line above the prompt after that time."""
    clock = ui.app.ready.options.clock
    assert isinstance(clock, StillClock)
    clock.now += seconds
    await ui.settle()
    return ui.app.ready.activity.render().plain.strip()


async def test_a_model_of_this_machine_is_said_to_load_until_it_is_there(tmp_path: Path):
    warm, clock = Warming(), StillClock()
    runtime = with_model(tmp_path, PULLED)
    async with running_app(tmp_path, runtime=runtime, warm=warm, clock=clock) as ui:
        assert await later(ui, 0.0) == ""
        assert (await later(ui, 2.0))[2:] == "Getting smollm2 ready… · 2s"
        warm.may_end.set()
        await ui.settle()
        assert ui.app.ready.activity.state is None


async def test_a_model_elsewhere_is_not_said_to_load(tmp_path: Path):
    warm, clock = Warming(), StillClock()
    async with running_app(tmp_path, warm=warm, clock=clock) as ui:
        assert await later(ui, 2.0) == ""
        warm.may_end.set()


async def test_a_turn_takes_the_line_over_and_counts_its_own_time(tmp_path: Path):
    warm, clock = Warming(), StillClock()
    runtime = with_model(tmp_path, PULLED)
    async with running_app(tmp_path, runtime=runtime, warm=warm, clock=clock) as ui:
        await later(ui, 9.0)
        await ui.send("hello")
        assert (await later(ui, 1.0))[2:] == "Waiting for the model… · 1s · esc stops"
        warm.may_end.set()
        await ui.settle()
        assert ui.app.ready.activity.state is not None
        ui.runtime.finish()
        await ui.settle()
        assert ui.app.ready.activity.state is None


async def test_what_went_wrong_is_said_and_the_program_goes_on(tmp_path: Path):
    warm, clock = Warming(), StillClock()
    warm.error = ModelFileError("smollm2.gguf is gone.", "Pull it again.")
    runtime = with_model(tmp_path, PULLED)
    async with running_app(tmp_path, runtime=runtime, warm=warm, clock=clock) as ui:
        warm.may_end.set()
        await ui.settle()
        assert ui.notices == ["smollm2.gguf is gone. Pull it again."]
        assert ui.app.ready.activity.state is None
        await ui.send("hello")
        assert ui.runtime.submitted == ["hello"]
