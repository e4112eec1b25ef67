"""The steps of the tour above the prompt."""

from pathlib import Path

from agent_tui.commands.tour import TOUR
from agent_tui.config import Settings
from agent_tui.providers.scripted.provider import Reply
from tests.ui.app_support import Ui, running_app


def step(ui: Ui) -> str:
    tour = ui.app.view.widgets.tour
    return str(tour.render()).splitlines()[0] if tour.display else ""


async def test_what_is_suggested_is_sent_by_enter_alone(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="fixed"), is_demo=True) as ui:
        assert step(ui).startswith("Tour 1/5  Ask for something")
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.sent == ["Fix the bug in greet.py"]
        assert step(ui).startswith("Tour 3/5")  # nothing was to be allowed


async def test_what_the_person_writes_is_sent_as_it_is(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="fixed"), is_demo=True) as ui:
        await ui.send("my own words")
        assert ui.sent == ["my own words"]


async def test_the_tour_can_be_hidden_and_suggests_nothing_then(tmp_path: Path):
    async with running_app(tmp_path, is_demo=True) as ui:
        await ui.send("/tour")
        assert step(ui) == ""
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.sent == []
        await ui.send("/tour on")
        assert step(ui).startswith("Tour 1/5")
        await ui.send("/tour maybe")
        assert "takes on or off" in ui.notices[-1]


async def test_there_is_no_tour_in_work_of_the_person_s_own(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        assert step(ui) == ""
        await ui.send("/tour")
        assert step(ui) == ""
        assert "agent-tui --demo" in ui.notices[-1]


async def test_its_texts_name_the_keys_that_are_in_force(tmp_path: Path):
    keys = {"keys": {"submit": "f5", "interrupt": "ctrl+x"}}
    settings = Settings.model_validate(keys)
    async with running_app(tmp_path, is_demo=True, settings=settings) as ui:
        tour = ui.app.view.widgets.tour
        assert "Press f5, and the message below is sent." in str(tour.render())
        assert "(f5 sends this)" in str(ui.app.prompt.area.placeholder)
        assert TOUR[1].shown.endswith("n refuses, ctrl+x stops it all.")
