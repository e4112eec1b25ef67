"""A start without a model in a program without the chooser."""

from pathlib import Path

import pytest

from agent_tui.commands.model import no_model_error
from agent_tui.providers.base import ModelRef
from agent_tui.ui.screens.listing import ModelPicker
from tests.support.models import ListedModels
from tests.ui.app_support import running_app, ways_to_a_model


async def test_without_a_chooser_a_line_says_how_to_have_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent_tui.ui.front.own_features", lambda: ())
    nothing = ListedModels(nothing=True)
    async with running_app(tmp_path, first_run=ways_to_a_model(), models=nothing) as ui:
        await ui.until(lambda: ui.notices == [str(no_model_error())])
        assert "ANTHROPIC_API_KEY" in ui.notices[0]
        ui.runtime.set_model(ModelRef(""))
        await ui.send("fix it")
        await ui.until(lambda: ui.notices[1:] == ["No model is selected. Use /model."])
        assert (ui.sent, ui.text) == ([], "fix it")
        await ui.submit("/model")
        await ui.until(lambda: isinstance(ui.app.screen, ModelPicker))
