from pathlib import Path

import pytest
from textual.widgets import Input, Static

from agent_tui.commands.core.plugin_kinds import STRATEGIES
from agent_tui.commands.core.plugins import Plugins
from agent_tui.compaction.strategies.registry import CompactionStrategy
from agent_tui.config.loading import LoadedSettings, load_settings
from agent_tui.config.specs import SettingSpec, setting_specs
from agent_tui.config.user_file import SettingsEditor, UserConfigFile, setting_named
from agent_tui.drafts.draft import Draft
from agent_tui.features.settings.screen import SettingsScreen, about, acts_at_once, rows_by_section
from agent_tui.ui.front import ScreenFront
from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.screens.choice import LineInputScreen
from agent_tui.ui.screens.listing import ModelPicker, ThemePicker
from tests.ui.app_support import Ui, listed, running_app


def editor_of(file: Path, **environ: str) -> SettingsEditor:
    return SettingsEditor(
        UserConfigFile(file),
        load=lambda: load_settings(file, environ),
        load_own=lambda: load_settings(file, {}),
        refuse=lambda spec, value: "no such theme" if value == "nowhere" else "",
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def lines(ui: Ui) -> list[str]:
    """The rows of the screen in front."""
    return [" ".join(line.split()) for line in listed(ui.app.screen)]


def said(ui: Ui) -> str:
    return str(ui.app.screen.query_one("#picker-message", Static).content)


async def search(ui: Ui, text: str) -> None:
    ui.app.screen.query_one("#picker-search", Input).value = text
    await ui.settle()


async def choose(ui: Ui, setting: str, value: str) -> None:
    await search(ui, setting)
    await ui.pilot.press("enter")
    await ui.until(lambda: not isinstance(ui.app.screen, SettingsScreen))
    await search(ui, value)
    await ui.pilot.press("enter")
    await ui.until(lambda: f"Saved: {setting}" in said(ui))


async def test_every_setting_is_listed_by_section_with_its_value_and_origin(tmp_path, file):
    file.write_text('theme = "nord"\n[compaction]\nauto = false\n')
    async with running_app(
        tmp_path, settings_editor=editor_of(file, AGENT_TUI_THINKING="low")
    ) as ui:
        await ui.send("/settings")
        await ui.until(lambda: "model default –" in lines(ui))
        shown = lines(ui)
        assert shown[0] == "general"
        assert "theme config.toml:1 nord" in shown
        assert "thinking environment low" in shown
        assert shown[shown.index("compaction") + 1] == "strategy default tiered"
        await ui.pilot.press("up", "up")
        assert "Model to use" in said(ui)
        await search(ui, "thinking")
        assert lines(ui)[0] == "thinking environment low"
        assert "the environment variable AGENT_TUI_THINKING sets it" in said(ui)
        await search(ui, "compact automatically")
        assert lines(ui) == ["compaction.auto config.toml:3 false"]
        await ui.pilot.press("escape", "escape")
        assert not isinstance(ui.app.screen, SettingsScreen)


async def test_a_switch_a_choice_and_a_number_are_changed_and_kept(tmp_path, file):
    brought = CompactionStrategy("abridge", "the first words", lambda _request: ())
    plugins = Plugins({STRATEGIES.group: [brought]})
    async with running_app(tmp_path, settings_editor=editor_of(file), plugins=plugins) as ui:
        await ui.send("/settings compaction.auto")
        await ui.until(lambda: lines(ui) == ["compaction.auto default true"])
        await ui.pilot.press("enter")
        await ui.until(lambda: "Saved: compaction.auto = false" in said(ui))
        assert file.read_text() == "[compaction]\nauto = false\n"
        assert lines(ui) == ["compaction.auto config.toml:2 false"]

        await choose(ui, "permission_mode", "plan")
        assert ui.runtime.conversation.permissions.mode == "plan"
        assert ui.status.mode == "plan"

        await search(ui, "compaction.strategy")
        assert "Allowed: tiered, hybrid, agent, abridge." in said(ui)
        await choose(ui, "compaction.strategy", "abridge")
        assert 'strategy = "abridge"' in file.read_text()

        await search(ui, "trigger_at")
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, LineInputScreen))
        field = ui.app.screen.query_one(LinesField)
        field.load(Draft("7"))
        await ui.pilot.press("enter")
        await ui.settle()
        problem = ui.app.screen.query_one("#line-problem", Static)
        assert "compaction.trigger_at takes a number above 0, below 1" in str(problem.content)
        field.load(Draft("0.75"))
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, SettingsScreen))
        await ui.until(lambda: "Saved: compaction.trigger_at = 0.75" in said(ui))
        assert ui.runtime.conversation.settings.trigger_at == 0.75
        settings = load_settings(file, {}).settings
        assert (settings.compaction.trigger_at, settings.permission_mode) == (0.75, "plan")


@pytest.mark.thorough
async def test_themes_and_models_are_picked_as_elsewhere_and_used_at_once(tmp_path, file):
    async with running_app(tmp_path, settings_editor=editor_of(file)) as ui:
        await ui.send("/settings theme")
        await ui.until(lambda: lines(ui) == ["theme default –"])
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ThemePicker) and bool(lines(ui)))
        await search(ui, "agent-light")
        await ui.pilot.press("enter")
        await ui.until(lambda: 'Saved: theme = "agent-light"' in said(ui))
        assert ui.app.theme == "agent-light"
        await search(ui, "any litellm name")
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ModelPicker) and len(lines(ui)) > 1)
        await ui.pilot.press("down", "enter")
        await ui.until(lambda: "Saved: model" in said(ui))
        assert ui.runtime.conversation.model.name == load_settings(file, {}).settings.model


async def test_a_value_is_reset_and_what_overrules_the_file_is_said(tmp_path, file):
    file.write_text("mouse = false\n")
    async with running_app(tmp_path, settings_editor=editor_of(file, AGENT_TUI_MOUSE="true")) as ui:
        await ui.send("/settings mouse")
        await ui.until(lambda: "mouse environment true" in lines(ui))
        await ui.until(lambda: "Your file has false" in said(ui))
        await ui.pilot.press("ctrl+r")
        await ui.until(lambda: "Removed from your file: mouse" in said(ui))
        assert file.read_text() == ""
        await ui.pilot.press("ctrl+r")
        await ui.until(lambda: "does not set mouse" in said(ui))
        ui.runtime.conversation.permissions.mode = "plan"
        await search(ui, "permission_mode")
        assert lines(ui)[0] == "permission_mode default ask"
        assert "In use now: plan." in said(ui)
        await search(ui, "compaction.target")
        target = ui.runtime.conversation.limits.target
        assert f"In use now: {target:,} tokens." in said(ui)


async def test_esc_clears_the_search_and_then_closes(tmp_path: Path, file: Path):
    async with running_app(tmp_path, settings_editor=editor_of(file)) as ui:
        await ui.send("/settings")
        await search(ui, "theme")
        await ui.pilot.press("escape")
        await ui.settle()
        assert isinstance(ui.app.screen, SettingsScreen)
        assert "model default –" in lines(ui)
        await ui.pilot.press("escape")
        await ui.until(lambda: not isinstance(ui.app.screen, SettingsScreen))


async def test_a_text_that_the_program_refuses_stays_in_the_field(tmp_path, file):
    async with running_app(tmp_path, settings_editor=editor_of(file)) as ui:
        await ui.send("/settings session_dir")
        await ui.until(lambda: lines(ui) == ["session_dir default –"])
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, LineInputScreen))
        ui.app.screen.query_one(LinesField).load(Draft("nowhere"))
        await ui.pilot.press("enter")
        problem = ui.app.screen.query_one("#line-problem", Static)
        await ui.until(lambda: "no such theme" in str(problem.content))
        await ui.pilot.press("escape", "escape")
        assert not file.exists()


async def test_the_file_is_edited_from_there_and_what_changed_is_in_force(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
):
    async def edit(_front: ScreenFront, path: Path) -> bool:
        assert "# How much the model thinks" in path.read_text(), "it explains itself"
        path.write_text('permission_mode = "plan"\nsandbox = "on"\nmodle = "x"\n')
        return True

    monkeypatch.setattr(ScreenFront, "edit_file", edit)
    async with running_app(tmp_path, settings_editor=editor_of(file)) as ui:
        await ui.send("/settings")
        await ui.until(lambda: "model default –" in lines(ui))
        await ui.pilot.press("ctrl+g")
        await ui.until(lambda: "sandbox config.toml:2 on" in lines(ui))
        await ui.until(lambda: "did you mean model" in said(ui))
        assert "at the next start: sandbox" in said(ui)
        assert ui.runtime.conversation.permissions.mode == "plan"


def test_what_a_change_would_do_is_said_of_every_setting(file: Path):
    editor = editor_of(file)
    loaded = editor.load()
    for spec in setting_specs(loaded.settings):
        text = about(spec, editor, loaded, acts_at_once=acts_at_once(spec.key))
        assert spec.description in text
        assert "at once" in text or "at the next start" in text or "ctrl+g" in text


def test_keys_in_addresses_are_not_shown(file: Path):
    file.write_text('base_url = "http://me:hunter2@host/v1"\n')
    rows = rows_by_section(editor_of(file).load())
    (value,) = [row.columns[-1] for row in rows if row.title.strip() == "base_url"]
    assert "hunter2" not in value


def test_rules_of_a_project_are_told_beside_ones_own(file: Path, tmp_path: Path):
    project = tmp_path / "project.toml"
    file.write_text('theme = "a"\n[permissions]\ndeny = ["read(x)"]\n')
    project.write_text('theme = "b"\n[permissions]\ndeny = ["read(y)"]\n')
    loaded: LoadedSettings = load_settings(file, {}, {}, [project])
    editor = editor_of(file)

    def stronger(name: str) -> str:
        spec: SettingSpec = setting_named(name)
        return editor.stronger_than_own(loaded, spec)

    assert stronger("permissions.deny") == ""
    assert f"{project}:1" in stronger("theme")
    rows = {row.title.strip(): row for row in rows_by_section(loaded)}
    assert rows["deny"].columns[0] == "2 files"
