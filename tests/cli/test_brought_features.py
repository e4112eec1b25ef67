"""Features of other packages: the value of the program's own, named by an entry point."""

from pathlib import Path

import pytest
from pydantic import BaseModel, PositiveFloat

from agent_tui.cli.plugins import load_plugins
from agent_tui.commands.core.plugin_kinds import COMMANDS, FEATURES
from agent_tui.config import Settings
from agent_tui.errors import ConfigError
from agent_tui.features.tour.scripted import Reply
from tests.support.packages import documented_plugin, make_package, run_with_packages
from tests.support.runtime import Stage
from tests.ui.app_support import asking, running_app

CODE = documented_plugin('"moon",')
TIMER = documented_plugin("TimerSettings")
ENTRIES = {"agent_tui.features": {"moon": "FEATURE"}}
NAMED = '["moon-plugin"]'


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_a_feature_of_a_package_brings_all_that_it_names(site: Path, tmp_path: Path):
    make_package(site, "moon-plugin", CODE, ENTRIES)
    found = load_plugins(["moon-plugin"], [tmp_path / "work"])
    assert found.problems == ()
    assert [one.name for one in found.of(FEATURES)][-1] == "moon"
    assert [one.name for one in found.of(COMMANDS)] == ["moon"]
    assert found.parts == {"moon-plugin": ["Feature moon", "command moon"]}


def test_its_code_is_not_imported_from_where_commands_may_write(site: Path, tmp_path: Path):
    make_package(site, "moon-plugin", CODE, ENTRIES)
    found = load_plugins(["moon-plugin"], [tmp_path])
    assert (found.of(COMMANDS), found.of(FEATURES)[-1].name) == ((), "why")
    assert "where the model's commands can write" in found.problems[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('f"{__name__}:moon"', '"elsewhere:moon"'),
        ("__name__),)", '"elsewhere"),)'),
        ("brings=", 'between_turns=("elsewhere:look",), brings='),
        ('f"{__name__}:check_moon"', '"elsewhere:check"'),
        ("brings=", 'part="elsewhere:Moon", brings='),
        ("brings=", 'verbs={"sessions": ("elsewhere:add",)}, brings='),
    ],
)
def test_it_names_objects_of_its_own_package_only(site: Path, tmp_path: Path, old: str, new: str):
    assert old in CODE
    make_package(site, "moon-plugin", CODE.replace(old, new), ENTRIES)
    (site / "elsewhere.py").write_text("raise SystemExit('imported')")
    found = load_plugins(["moon-plugin"], [tmp_path / "work"])
    assert found.of(COMMANDS) == ()
    assert "elsewhere" in found.problems[0]
    assert "its own package" in found.problems[0]


def test_its_part_is_one(site: Path, tmp_path: Path):
    code = CODE.replace("brings=", 'part=f"{__name__}:build_parser", brings=')
    make_package(site, "moon-plugin", code, ENTRIES)
    found = load_plugins(["moon-plugin"], [tmp_path / "work"])
    assert found.of(COMMANDS) == ()
    assert "build_parser is not derived from Part" in found.problems[0]


def test_what_it_imports_later_does_not_come_from_where_commands_may_write(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    module = make_package(site, "moon-plugin", "", ENTRIES)
    (site / f"{module}.py").unlink()
    package = site / module
    package.mkdir()
    (package / "__init__.py").write_text(CODE.replace("__name__),)", 'f"{__name__}.later"),)'))
    (package / "later.py").write_text("import helper_in_folder")
    (folder := tmp_path / "work").mkdir()
    (folder / "helper_in_folder.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w')")
    monkeypatch.syspath_prepend(str(folder))
    found = load_plugins(["moon-plugin"], [folder])
    for feature in found.of(FEATURES):
        for row in feature.subcommands:
            row.load()
    assert not (tmp_path / "marker").exists()
    assert "No module named 'helper_in_folder'" in found.problems[0]


def test_it_cannot_bring_a_tool_that_judges_itself(site: Path, tmp_path: Path):
    code = CODE.replace("brings=", 'tools=(f"{__name__}:moon",), brings=')
    make_package(site, "moon-plugin", code, ENTRIES)
    found = load_plugins(["moon-plugin"], [tmp_path / "work"])
    assert found.of(COMMANDS) == ()
    assert "agent_tui.tool" in found.problems[0]


@pytest.mark.parametrize(
    "name",
    [
        *("options", "options_module", "front", "tool_servers", "sandbox", "caller", "adapters"),
        "settings",
        "prompt_modes",
    ],
)
def test_it_cannot_bring_what_is_used_before_it_is_loaded(name: str, site: Path, tmp_path: Path):
    code = CODE.replace("brings=", f'{name}=(f"{{__name__}}:moon",), brings=')
    make_package(site, "moon-plugin", code, ENTRIES)
    found = load_plugins(["moon-plugin"], [tmp_path / "work"])
    assert found.of(COMMANDS) == ()
    assert f"too late to bring {name}" in found.problems[0]


@pytest.mark.thorough
def test_its_subcommand_runs_if_the_settings_name_the_package(site: Path, tmp_path: Path):
    make_package(site, "moon-plugin", CODE, ENTRIES)
    done = run_with_packages(site, tmp_path, "moon", "--full", plugins=NAMED)
    assert (done.returncode, done.stdout) == (0, "It is full.\n")


@pytest.mark.thorough
def test_without_the_setting_the_word_is_a_prompt(site: Path, tmp_path: Path):
    make_package(site, "moon-plugin", CODE, ENTRIES)
    done = run_with_packages(site, tmp_path, "moon", plugins="[]")
    assert "full" not in done.stdout


async def test_the_timer_of_the_page_shows_how_long_it_runs(site: Path, tmp_path: Path):
    make_package(site, "timer-plugin", TIMER, {"agent_tui.features": {"timer": "FEATURE"}})
    found = load_plugins(["timer-plugin"], [tmp_path / "work"])
    assert found.problems == ()
    stage = Stage(tmp_path)
    runtime = asking(stage, features=found.of(FEATURES))
    plugin = {"timer": {"minutes": 50}}
    runtime.services.settings = runtime.services.settings.model_copy(update={"plugin": plugin})
    async with running_app(tmp_path, stage=stage, runtime=runtime, plugins=found) as ui:
        standing = ui.app.view.widgets.standing
        await ui.submit("/timer")
        await ui.settle()
        print(
            "DBG",
            repr(standing.content),
            ui.notices,
            ui.blocks,
            [str(t) for t in __import__("asyncio").all_tasks() if "count" in str(t)],
        )
        await ui.until(lambda: "timer: 50 min left" in str(standing.content))
        await ui.submit("/new")
        await ui.until(lambda: "timer: 50 min left" in str(standing.content))
        await ui.submit("/timer")
        await ui.until(lambda: not standing.display)


async def test_what_its_code_does_wrong_is_told_once_and_ends_nothing(site: Path, tmp_path: Path):
    code = CODE.replace(
        "brings=", 'between_turns=(f"{__name__}:look", f"{__name__}:text"), brings='
    )
    code += """
from agent_tui.events import FeatureEvent


class Phase(FeatureEvent):
    def standing(self):
        return "half full"


def look(front):
    return Phase()


async def text(front):
    return "half full"
"""
    make_package(site, "moon-plugin", code, ENTRIES)
    found = load_plugins(["moon-plugin"], [tmp_path / "work"])
    async with running_app(tmp_path, Reply("Hi."), Reply("Hi."), plugins=found) as ui:
        standing = ui.app.view.widgets.standing
        await ui.until(lambda: str(standing.content) == "half full")
        for _ in "12":
            await ui.send("hello")
        (told,) = [one for one in ui.notices if "moon" in one]
        assert told.startswith("The feature moon failed as it looked for something to say (")
        assert told.endswith("TypeError: it returned str, not a FeatureEvent or None")


def test_settings_of_a_plugin_are_checked_by_its_own_model():
    class Timer(BaseModel):
        minutes: PositiveFloat = 25

    settings = Settings.model_validate({"plugin": {"timer": {"minutes": -1}}})
    assert settings.of_plugin("moon", Timer).minutes == 25
    with pytest.raises(ConfigError, match=r"plugin\.timer\.minutes cannot be used"):
        settings.of_plugin("timer", Timer)
