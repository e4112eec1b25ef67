"""The entry for the ACP registry: what its checks ask for, and that it starts this package."""

import json
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent_tui import __version__
from agent_tui.cli.subcommands import SUBCOMMANDS

ROOT = Path(__file__).parents[2]
(ENTRY,) = (ROOT / "docs/packaging/acp-registry").iterdir()
AGENT = json.loads((ENTRY / "agent.json").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_entry_is_of_this_version_and_package():
    package = AGENT["distribution"]["uvx"]
    assert AGENT["version"] == __version__
    assert package["package"] == f"{PROJECT['name']}=={__version__}"
    assert AGENT["description"] == PROJECT["description"]
    assert AGENT["license"] == PROJECT["license"]
    assert AGENT["website"] == PROJECT["urls"]["Documentation"]
    assert AGENT["repository"] == PROJECT["urls"]["Homepage"]
    assert AGENT["authors"] == [author["name"] for author in PROJECT["authors"]]


def test_the_package_has_the_command_that_is_started_and_all_it_needs():
    assert PROJECT["scripts"][PROJECT["name"]] == PROJECT["scripts"]["agent-tui"]
    assert AGENT["distribution"]["uvx"]["args"][0] in SUBCOMMANDS
    assert any(each.startswith("agent-client-protocol") for each in PROJECT["dependencies"])


def test_the_entry_is_named_as_its_folder_and_has_what_is_required():
    assert AGENT["id"] == ENTRY.name
    assert re.fullmatch(r"[a-z][a-z0-9-]*", AGENT["id"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", AGENT["version"])
    assert AGENT["license_url"].startswith("https://")
    assert {each.name for each in ENTRY.iterdir()} == {"agent.json", "icon.svg"}


@pytest.mark.parametrize("attribute", ["fill", "stroke"])
def test_the_icon_is_small_and_of_the_colour_of_text(attribute: str):
    icon = ElementTree.fromstring((ENTRY / "icon.svg").read_text())
    assert (icon.get("width"), icon.get("height"), icon.get("viewBox")) == ("16", "16", "0 0 16 16")
    used = {value for each in icon.iter() if (value := each.get(attribute)) is not None}
    assert used <= {"none", "currentColor"}
    assert "currentColor" in {icon.get("fill"), icon.get("stroke")}
