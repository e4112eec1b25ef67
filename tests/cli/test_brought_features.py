"""Features of other packages: the value of the program's own, named by an entry point."""

from pathlib import Path

import pytest

from agent_tui.cli.plugins import load_plugins
from agent_tui.commands.core.plugin_kinds import COMMANDS, FEATURES
from tests.support.packages import documented_plugin, make_package, run_with_packages

CODE = documented_plugin("Feature(")
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
