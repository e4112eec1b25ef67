"""Tools and commands of other packages: those that the settings name, and never from the folder."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_tui.cli.plugins import load_plugins
from agent_tui.commands.core.plugin_kinds import COMMANDS, TOOLS
from agent_tui.commands.core.registry import CalledCommand, load_commands
from agent_tui.errors import AgentTuiError

CODE = """
from agent_tui import command, tool

MADE = open({marker!r}, "w").close()

@tool
def weather(place: str) -> str:
    "Say what the weather is."
    return f"rain in {{place}}"

@command("[place]")
async def forecast(front, argument):
    "Say what the weather will be."
    front.say(f"More rain in {{argument}}.")

@command("[focus]", aliases=("forecast", "outlook"))
async def weather_now(front, argument):
    "Have a name that another command of the package has."

@command("[focus]", aliases=("compact",))
async def rain(front, argument):
    "Take the place of a command of the program."

@tool
def read(path: str) -> str:
    "Take the place of a tool of the program."
    return path
"""
ENTRIES = """
[agent_tui.tools]
weather = {module}:weather
read = {module}:read
number = {module}:MADE
gone = {module}:gone
[agent_tui.commands]
forecast = {module}:forecast
now = {module}:weather_now
rain = {module}:rain
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, one of which is ``Weather-Plugin``."""
    folder = tmp_path / "site"
    info = folder / "weather_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    module = f"weather_{tmp_path.name.replace('-', '_')}"
    (folder / f"{module}.py").write_text(CODE.format(marker=str(tmp_path / "imported")))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: weather_plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES.format(module=module))
    monkeypatch.syspath_prepend(str(folder))
    return folder


async def test_a_command_of_a_plugin_that_fails_says_so(site: Path, tmp_path: Path) -> None:
    (command,) = load_plugins(["weather-plugin"], [tmp_path / "work"]).of(COMMANDS)
    with pytest.raises(AgentTuiError, match=r"/forecast failed: AttributeError: .*say'\. The"):
        await CalledCommand(command, "Oslo").run(SimpleNamespace(is_working=False))  # type: ignore[arg-type]


def test_a_package_that_is_named_gives_its_tools_and_commands(site: Path, tmp_path: Path) -> None:
    found = load_plugins(["Weather-Plugin"], [tmp_path / "work"])
    assert [tool.name for tool in found.of(TOOLS)] == ["weather"]
    assert [command.usage for command in found.of(COMMANDS)] == ["/forecast [place]"]
    assert len(found.problems) == 5
    for why in (
        "MADE was not made by agent_tui.tool.",
        "AttributeError",
        "read exists already",
        "forecast exists",
        "compact exists",
    ):
        assert any(why in problem for problem in found.problems)


def test_one_that_cannot_be_read_stops_nothing(site: Path) -> None:
    info = site / "odd_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-plugin\nVersion: 1.0\n")
    for value in (":nothing", "a b c", "__main__:x", "sys:exit"):
        (info / "entry_points.txt").write_text(f"[agent_tui.tools]\nodd = {value}\n")
        found = load_plugins(["odd-plugin", "", "weather-plugin"], [])
        assert [tool.name for tool in found.of(TOOLS)] == ["weather"]
        assert "odd-plugin" in found.problems[0]


@pytest.mark.usefixtures("site")
def test_what_is_not_named_is_not_imported(tmp_path: Path) -> None:
    assert load_plugins([], []).problems == ()
    (problem,) = load_plugins(["weather"], []).problems
    assert (
        "No plugin weather is installed beside agent-tui. Did you mean weather_plugin?" in problem
    )
    assert problem.endswith(", or remove weather from `plugins`.")
    why = load_commands().refusal("/forecast Oslo")
    assert why.startswith("Unknown command /forecast. The package weather_plugin has it; ")
    assert not (tmp_path / "imported").exists()


def test_a_package_that_brings_nothing_is_said() -> None:
    assert load_plugins(["pytest"], []).problems == (
        "The package pytest brings nothing: it has no entry point for agent-tui. Remove it from "
        "`plugins`, or check its name.",
    )


def test_code_where_commands_may_write_is_not_imported(site: Path, tmp_path: Path) -> None:
    found = load_plugins(["weather-plugin"], [site.parent])
    assert found.of(TOOLS) == found.of(COMMANDS) == ()
    assert "where the model's commands can write" in found.problems[0]
    assert not (tmp_path / "imported").exists()


def test_metadata_outside_is_no_cover_for_code_inside(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (module,) = site.glob("*.py")
    module.rename(work / module.name)
    monkeypatch.syspath_prepend(str(work))
    found = load_plugins(["weather-plugin"], [work])
    assert found.of(TOOLS) == ()
    assert not (tmp_path / "imported").exists()


def test_a_plugin_imports_nothing_from_where_commands_may_write(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    helper = f"helper_{tmp_path.name.replace('-', '_')}"
    (work / f"{helper}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()")
    (module,) = site.glob("*.py")
    module.write_text(f"import {helper}\n{module.read_text()}")
    monkeypatch.syspath_prepend(str(work))
    found = load_plugins(["weather-plugin"], [work])
    assert found.of(TOOLS) == ()
    assert "ModuleNotFoundError" in found.problems[0]
    assert not (tmp_path / "imported").exists()
