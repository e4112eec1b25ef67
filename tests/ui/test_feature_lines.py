"""Events that say themselves what is shown: no front has a case for them."""

from dataclasses import dataclass
from pathlib import Path

from agent_tui.commands.event_lines import event_line
from agent_tui.events import FeatureEvent, Standing
from agent_tui.features.goal.events import GoalChanged
from agent_tui.ui.chat.lines_above_prompt import FeatureLines
from tests.ui.app_support import Ui, running_app


@dataclass(frozen=True, slots=True)
class TideTurned(FeatureEvent):
    height: int = 0
    is_for_pauses: bool = False

    def line(self) -> str:
        return f"The water is {self.height} m high." if self.height else "The water is gone.\x1b[2J"

    def standing(self) -> Standing:
        if not self.height:
            return Standing()
        return Standing("tide", "/tide says when", f"{self.height} m\x1b[2J", self.is_for_pauses)


def shown(ui: Ui) -> str:
    lines = ui.app.query_one(FeatureLines)
    return str(lines.render()) if lines.display else ""


async def test_a_line_stays_above_the_prompt_until_the_next_event(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.show_events(TideTurned(3))
        assert shown(ui).startswith("tide  /tide says when  3 m")
        assert "\x1b" not in shown(ui)
        ui.show_events(GoalChanged("Reach it", 1, 2, 1, 0.0))
        assert len(shown(ui).splitlines()) == 2
        assert ui.notices == []
        ui.show_events(TideTurned())
        assert "tide" not in shown(ui)
        assert "goal 1 of 2 checks · 1 turn  /goal go continues  Reach it" in shown(ui)
        assert "The water is gone." in ui.notices[-1]


async def test_while_something_runs_the_hint_and_lines_for_pauses_are_hidden(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.show_events(TideTurned(3), GoalChanged("Reach it", 1, 2, 1, 0.0))
        lines = ui.app.query_one(FeatureLines)
        lines.pause(is_paused=False)
        assert shown(ui).splitlines()[0].startswith("tide  3 m")
        ui.show_events(TideTurned(3, is_for_pauses=True))
        assert shown(ui) == "goal 1 of 2 checks · 1 turn  Reach it"
        lines.pause(is_paused=True)
        assert "tide" in shown(ui)


def test_other_fronts_have_its_line():
    assert event_line(TideTurned(2)) == "The water is 2 m high."
    assert event_line(GoalChanged("Reach it", 0, 2, 0, 0.0)) == ""
