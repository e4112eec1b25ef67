"""The plugins in the settings: what each brings, and what was not loaded."""

from pathlib import Path

import pytest

from agent_tui.features.doctor.settings import check_plugins
from tests.support.packages import make_package

CODE = """
from agent_tui import command, tool

@tool
def weather(place: str) -> str:
    "Say what the weather is."
    return place

@command()
async def forecast(front, argument):
    "Say what the weather will be."

@tool
def read(path: str) -> str:
    "Have a name that is taken."
    return path
"""
TOOLS = {"weather": "weather", "read": "read"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, one of which is ``weather-plugin``."""
    entries = {"agent_tui.tools": TOOLS, "agent_tui.commands": {"forecast": "forecast"}}
    make_package(tmp_path / "site", "weather-plugin", CODE, entries)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


@pytest.mark.usefixtures("site")
def test_each_plugin_is_listed_with_what_it_brings_and_what_was_refused(config, environment):
    config.write_text('plugins = ["weather-plugin", "gone-plugin"]')
    loaded, refused, gone = check_plugins(environment())
    assert (loaded.name, loaded.state) == ("weather-plugin", "ok")
    assert loaded.found == "tool weather, command forecast"
    assert "Of the plugin weather-plugin, read was not loaded: read exists" in refused.found
    assert "No plugin gone-plugin is installed beside agent-tui" in gone.found
    assert (refused.state, gone.state) == ("warning", "warning")


def test_a_plugin_in_the_working_folder_is_refused(site, config, environment, monkeypatch):
    monkeypatch.chdir(site)
    config.write_text('plugins = ["weather-plugin"]')
    listed, *refused = check_plugins(environment())
    assert listed.found == "brings nothing"
    assert len(refused) == 3
    assert all("where the model's commands can write" in one.found for one in refused)


@pytest.mark.usefixtures("site")
def test_a_plugin_that_is_installed_but_not_named_is_listed(config, environment):
    (found,) = check_plugins(environment())
    assert (found.name, found.state) == ("weather-plugin", "info")
    assert found.found == "installed but not named in `plugins`: not loaded"
    config.write_text('plugins = ["Weather_Plugin"]')
    assert not any("not named" in one.found for one in check_plugins(environment()))


def test_without_plugins_nothing_is_said(environment):
    assert not list(check_plugins(environment()))
