"""States of the screen of settings, for the pictures."""

from pathlib import Path

from agent_tui.config.loading import load_settings
from agent_tui.config.user_file import SettingsEditor, UserConfigFile
from agent_tui.drafts.draft import Draft
from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.screens.choice import LineInputScreen
from agent_tui.ui.screens.picker import RowList
from tests.ui.app_support import Ui

OWN = 'mouse = false\nbase_url = "http://127.0.0.1:8080/v1"\n[compaction]\nauto = false\n'


def editor_in(home: Path) -> SettingsEditor:
    """Settings of a person's file, with one variable that is stronger."""
    file = home / "config.toml"
    file.write_text(OWN, encoding="utf-8")
    environ = {"AGENT_TUI_THINKING": "low"}
    return SettingsEditor(
        UserConfigFile(file),
        load=lambda: load_settings(file, environ),
        load_own=lambda: load_settings(file, {}),
        refuse=lambda _spec, _value: "",
    )


async def settings_page(ui: Ui) -> None:
    """All settings, one of them overruled."""
    await ui.send("/settings")
    await ui.until(lambda: _is_filled(ui))
    await ui.pilot.press("down", "down", "down")
    await ui.settle()


async def setting_refused(ui: Ui) -> None:
    """A value that cannot be."""
    await ui.send("/settings trigger_at")
    await ui.until(lambda: _is_filled(ui))
    await ui.pilot.press("enter")
    await ui.until(lambda: isinstance(ui.app.screen, LineInputScreen))
    ui.app.screen.query_one(LinesField).load(Draft("80"))
    await ui.settle()


def _is_filled(ui: Ui) -> bool:
    return ui.app.screen.query_one(RowList).count > 0
