"""The steps of the tour above the prompt."""

import sys
from pathlib import Path

from textual.widgets import OptionList, Static

from agent_tui.cli import screen_command
from agent_tui.cli.arguments import Arguments, parse_arguments
from agent_tui.config import Settings
from agent_tui.features.first_run.screen import FirstRunScreen
from agent_tui.features.tour.replies import DEMO_MODEL
from agent_tui.features.tour.scripted import Reply
from agent_tui.features.tour.steps import TOUR
from agent_tui.ui.options import KeyChoice
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.terminal.outcome import UiOutcome
from tests.support.models import OTHER, ListedModels
from tests.ui.app_support import Ui, held, running_app, ways_to_a_model


def step(ui: Ui) -> str:
    tour = ui.app.view.widgets.steps
    return str(tour.render()).splitlines()[0] if tour.display else ""


async def test_what_is_suggested_is_sent_by_enter_alone(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="fixed"), demo=TOUR) as ui:
        assert step(ui).startswith("Tour 1/5  Ask for something")
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.sent == ["Fix the bug in greet.py"]
        assert step(ui).startswith("Tour 3/5")  # nothing was to be allowed


async def test_what_the_person_writes_is_sent_as_it_is(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="fixed"), demo=TOUR) as ui:
        await ui.send("my own words")
        assert ui.sent == ["my own words"]


async def test_the_tour_can_be_hidden_and_suggests_nothing_then(tmp_path: Path):
    async with running_app(tmp_path, demo=TOUR) as ui:
        await ui.send("/tour")
        assert step(ui) == ""
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.sent == []
        await ui.send("/tour on")
        assert step(ui).startswith("Tour 1/5")
        await ui.send("/tour maybe")
        assert "takes on or off" in ui.notices[-1]


async def test_a_conversation_is_left_for_the_tour_after_a_question(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="Hi.")) as ui:
        assert step(ui) == ""
        await ui.send("hello")
        await ui.submit("/tour")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        facts = ui.app.screen.query_one("#choice-facts", Static)
        assert "agent-tui -c" in str(facts.render())
        await ui.pilot.press("n")
        await ui.settle()
        assert ui.app.return_value is None
        await ui.submit("/tour")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.pilot.press("y")
        await ui.until(lambda: ui.app.return_value == UiOutcome(wants_demo=True))


async def test_the_tour_does_not_stop_a_running_turn(tmp_path: Path):
    async with running_app(tmp_path, held("word ")) as ui:
        await ui.send("hello")
        await ui.send("/tour")
        assert not isinstance(ui.app.screen, ChoiceScreen)
        assert ui.notices[-1].startswith("The tour cannot start while the agent works.")


async def test_its_last_step_offers_the_ways_to_a_real_model(tmp_path: Path):
    ways = ways_to_a_model(
        (KeyChoice("OpenAI", "OPENAI_API_KEY", OTHER),), is_start=False, demo=None
    )
    options = {"demo": TOUR, "first_run": ways, "models": ListedModels(nothing=True)}
    async with running_app(tmp_path, **options) as ui:
        ui.runtime.set_model(DEMO_MODEL)
        assert not isinstance(ui.app.screen, FirstRunScreen), "the tour comes first"
        await ui.send("/model")
        await ui.until(lambda: isinstance(ui.app.screen, FirstRunScreen))
        await ui.settle()
        rows = [str(option.prompt) for option in ui.app.screen.query_one(OptionList).options]
        assert rows[0].startswith("1  Paste a key: OpenAI")
        assert not any("tour" in row for row in rows)
        await ui.pilot.press("1")
        await ui.write("sk-1")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.model == OTHER)


def test_the_tour_knows_nothing_of_the_conversation_before_it(monkeypatch):
    shown: list[Arguments] = []
    outcomes = [UiOutcome(wants_demo=True), UiOutcome(exit_code=5)]

    def show(arguments: Arguments) -> UiOutcome:
        shown.append(arguments)
        return outcomes.pop(0)

    monkeypatch.setattr(screen_command, "_show", show)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    arguments = parse_arguments(["--local", "-c", "--session-dir", "here", "fix it"])
    assert screen_command.run_screen(arguments) == 5
    assert shown == [arguments, parse_arguments(["--demo", "--session-dir", "here"])]


async def test_its_texts_name_the_keys_that_are_in_force(tmp_path: Path):
    keys = {"keys": {"submit": "f5", "interrupt": "ctrl+x"}}
    settings = Settings.model_validate(keys)
    async with running_app(tmp_path, demo=TOUR, settings=settings) as ui:
        tour = ui.app.view.widgets.steps
        assert "Press f5 to send the message below." in str(tour.render())
        assert "(f5 sends this)" in str(ui.app.prompt.area.placeholder)
        assert TOUR.steps[1].shown.endswith("n to refuse, ctrl+x to stop.")
