"""Subcommands of other packages: listed by their entry points, imported when they run."""

from pathlib import Path

import pytest

from agent_tui.cli.plugins import load_plugins
from agent_tui.commands.core.plugin_kinds import SUBCOMMANDS
from tests.support.packages import call_with_packages, documented_plugin, make_package

CODE = documented_plugin("TIDE = ")
NAMED = '["tide-plugin"]'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


def make_tide(site: Path, code: str = CODE, name: str = "tide", value: str = "TIDE") -> None:
    make_package(site, "tide-plugin", code, {SUBCOMMANDS.group: {name: value}})


def test_help_lists_it_and_imports_nothing(site: Path, tmp_path: Path):
    make_tide(site, f"open({str(tmp_path / 'marker')!r}, 'w')\n")
    metadata = site / "tide_plugin-1.0.dist-info" / "METADATA"
    metadata.write_text(f"{metadata.read_text()}Summary: The tides\x1b[2J of every coast\n")
    shown = call_with_packages(site, tmp_path, "--help", plugins=NAMED).stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("  tide ")]
    assert line.startswith("  tide         The tides")
    assert "\x1b" not in line
    assert shown.index("  events ") < shown.index(line) < shown.index("examples:")
    assert not (tmp_path / "marker").exists()
    assert "tide" not in call_with_packages(site, tmp_path, "--help", plugins="[]").stdout


def test_without_a_summary_the_package_is_named(site: Path, tmp_path: Path):
    make_tide(site)
    done = call_with_packages(site, tmp_path, "--help", plugins=NAMED)
    assert (done.returncode, done.stderr) == (0, "")
    assert "  tide         tide-plugin\n" in done.stdout


def test_it_runs(site: Path, tmp_path: Path):
    make_tide(site)
    done = call_with_packages(site, tmp_path, "tide", "--now", plugins=NAMED)
    assert (done.returncode, done.stdout) == (0, "It is high.\n")


@pytest.mark.parametrize(
    ("code", "name", "why"),
    [
        (CODE.replace('"tide", "say', '"models", "say'), "models", "models exists already"),
        (CODE, "ebb", "its name is tide, not that of its entry point"),
        (CODE.replace("__name__)", '"elsewhere")'), "tide", "not in its own package"),
    ],
)
def test_what_cannot_be_used_is_left_out(
    code: str, name: str, why: str, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    make_tide(site, code, name)
    monkeypatch.syspath_prepend(str(site))
    found = load_plugins(["tide-plugin"], [tmp_path / "work"])
    assert found.of(SUBCOMMANDS) == ()
    assert why in found.problems[0]


def test_one_that_commands_could_have_written_is_not_imported(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    make_tide(site, f"open({str(tmp_path / 'marker')!r}, 'w')\n")
    monkeypatch.syspath_prepend(str(site))
    found = load_plugins(["tide-plugin"], [site])
    assert "where the model's commands can write" in found.problems[0]
    assert not (tmp_path / "marker").exists()
