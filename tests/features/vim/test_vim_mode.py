"""The keys of vi in the prompt of the whole program."""

from pathlib import Path

from textual.widget import Widget

from agent_tui.config import Settings
from agent_tui.features.settings.screen import SettingsScreen
from agent_tui.features.tree.screen import TreeScreen
from tests.ui.app_support import Ui, held, listed, running_app
from tests.ui.settings_scenes import editor_in

VIM = Settings.model_validate({"vim_mode": True})


def title(ui: Ui) -> str:
    return str(ui.app.query_one("#prompt-frame", Widget).border_title or "")


async def test_modes_are_shown_and_motions_and_operators_edit_the_draft(tmp_path: Path):
    async with running_app(tmp_path, settings=VIM) as ui:
        assert title(ui) == "insert"
        await ui.write("one two")
        await ui.pilot.press("escape")
        assert title(ui) == "normal"
        await ui.pilot.press("b", "2", "d")
        assert title(ui) == "normal 2d"
        await ui.pilot.press("w")
        assert (ui.text, title(ui)) == ("one ", "normal")
        await ui.pilot.press("u")
        assert ui.text == "one two"
        await ui.pilot.press("v", "e")
        assert title(ui) == "visual"
        assert ui.app.prompt.area.selected_text == "two"
        await ui.pilot.press("c")
        await ui.write("2")
        assert (ui.text, title(ui)) == ("one 2", "insert")
        await ui.pilot.press("escape", "ctrl+r", "z")
        assert ui.text == "one 2"


async def test_enter_sends_and_one_writes_again(tmp_path: Path):
    async with running_app(tmp_path, held("part"), settings=VIM) as ui:
        await ui.write("go")
        await ui.pilot.press("escape", "enter")
        await ui.settle()
        assert (ui.text, title(ui)) == ("", "insert")
        assert ui.runtime.is_busy


async def test_escape_stops_the_turn_from_normal_mode_alone(tmp_path: Path):
    async with running_app(tmp_path, held("part"), settings=VIM) as ui:
        await ui.send("go")
        await ui.write("x")
        await ui.pilot.press("escape")
        assert ui.runtime.is_busy
        await ui.pilot.press("d", "escape")
        assert ui.runtime.is_busy
        await ui.pilot.press("escape")
        await ui.until(lambda: not ui.runtime.is_busy)
        assert not isinstance(ui.app.screen, TreeScreen)


async def test_j_and_k_at_the_edges_walk_the_history(tmp_path: Path):
    async with running_app(tmp_path, held("a"), settings=VIM) as ui:
        await ui.send("first")
        await ui.write("draft")
        await ui.pilot.press("escape", "k")
        assert (ui.text, title(ui)) == ("first", "normal")
        await ui.pilot.press("x")
        assert ui.text == "firs"
        await ui.pilot.press("j")
        assert ui.text == "draft"


async def test_the_menu_opens_while_one_writes_alone(tmp_path: Path):
    async with running_app(tmp_path, settings=VIM) as ui:
        await ui.write("/he")
        await ui.until(lambda: ui.app.prompt.menu.is_open)
        await ui.pilot.press("escape")
        assert not ui.app.prompt.menu.is_open
        await ui.pilot.press("h")
        await ui.settle()
        assert not ui.app.prompt.menu.is_open


async def test_the_setting_acts_at_once_and_is_off_by_default(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        assert title(ui) == ""
        await ui.write("one")
        ui.app.window.prompt.use_modes(VIM)
        assert title(ui) == "insert"
        await ui.pilot.press("escape", "x")
        assert ui.text == "on"
        ui.app.window.prompt.use_modes(Settings())
        await ui.write("x")
        assert (ui.text, title(ui)) == ("oxn", "")


async def test_the_command_leads_to_the_setting(tmp_path: Path):
    async with running_app(tmp_path, settings_editor=editor_in(tmp_path)) as ui:
        await ui.send("/vim")
        await ui.until(lambda: isinstance(ui.app.screen, SettingsScreen))
        assert any("vim_mode" in row for row in listed(ui.app.screen))
