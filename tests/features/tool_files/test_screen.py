"""On the screen: the question, `/reload`, the tool list and the commands of a file."""

from pathlib import Path
from typing import cast

import pytest

from agent_tui.features.tour.scripted import Reply
from agent_tui.ui.screens.choice import ChoiceScreen
from tests.support.runtime import Stage
from tests.ui.app_support import running_app

TEXT = '''\
from agent_tui import command


@command("[place]")
async def forecast(front, argument):
    """Say what the weather will be."""
    front.say(f"more rain in {argument}")
'''


@pytest.mark.thorough
async def test_a_new_file_is_asked_about_and_reload_takes_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    stage = Stage(tmp_path)
    folder = stage.config / "tools"
    folder.mkdir(parents=True)
    async with running_app(tmp_path, Reply(text="Hi."), stage=stage) as ui:
        (folder / "forecast.py").write_text(TEXT)
        await ui.submit("/reload")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        question = cast(ChoiceScreen[object], ui.app.screen).question
        assert question.title == "Load forecast.py?"
        assert question.choices[question.marked].value is None
        await ui.pilot.press("escape")
        await ui.until(lambda: "you have not approved it" in ui.notices[-1])
        await ui.submit("/reload")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        ui.app.screen.dismiss(True)
        await ui.until(lambda: ui.notices[-1] == "forecast.py: /forecast")
        await ui.write("/forec")
        await ui.until(lambda: any(i.label == "/forecast" for i in ui.app.prompt.menu.items))
        ui.app.prompt.clear()
        await ui.submit("/forecast Rome")
        await ui.until(lambda: ui.notices[-1] == "more rain in Rome")
        (folder / "forecast.py").unlink()
        await ui.submit("/reload")
        await ui.until(lambda: "There are no files in" in ui.notices[-1])
        await ui.submit("/reload x")
        await ui.until(lambda: ui.notices[-1] == "/reload takes ask, not x.")
