"""New setting: a field in ``config/schema.py``; everything else follows from it."""

import json

import pytest

from tests.recipes.program_copy import ProgramCopy

FIELD = """\
    lines_kept: int = Field(default=7, ge=1, le=90, description="Lines that are kept of a page")
"""
SCHEMA = "agent_tui/config/schema.py"
PROJECT = "agent_tui/config/project.py"


@pytest.fixture
def copy(tmp_path) -> ProgramCopy:
    made = ProgramCopy(tmp_path, "New setting")
    made.insert_before(SCHEMA, "    mouse: bool = Field(", FIELD)
    return made


def shown(copy: ProgramCopy, **environ: str) -> dict[str, object]:
    done = copy.run("config", "show", "lines_kept", "--json", **environ)
    (row,) = json.loads(done.stdout)["settings"]
    return row


@pytest.mark.thorough
def test_it_is_shown_set_refused_and_overruled_in_the_shell(copy):
    row = shown(copy)
    assert (row["value"], row["layer"]) == (7, "default")
    assert row["description"] == "Lines that are kept of a page"
    refused = copy.run("config", "set", "lines_kept", "91")
    assert refused.returncode == 1
    assert "at least 1, at most 90" in refused.stderr
    assert copy.run("config", "set", "lines_kept", "12").returncode == 0
    assert (shown(copy)["value"], shown(copy)["layer"]) == (12, "own file")
    overruled = shown(copy, AGENT_TUI_LINES_KEPT="20")
    assert (overruled["value"], overruled["layer"]) == (20, "environment")


@pytest.mark.thorough
def test_a_shell_completes_its_name_and_doctor_knows_its_variable(copy):
    offered = copy.completions("agent-tui config set lin")
    assert offered == ["lines_kept\tLines that are kept of a page"]
    report = json.loads(copy.run("doctor", "--json", AGENT_TUI_LINES_KEPT="20").stdout)
    found = {check["name"]: check for check in report["checks"] if check["section"] == "settings"}
    assert "AGENT_TUI_LINES_KEPT" in found["environment"]["found"]


@pytest.mark.thorough
def test_the_screen_lists_it_under_settings(copy):
    with copy.typing("--demo") as screen:
        screen.wait_for("scripted tour")
        screen.send("/settings lines_kept\r")
        screen.wait_for("Lines that are kept of a page")


@pytest.mark.thorough
def test_a_trusted_project_sets_it_once_the_list_of_projects_has_it(copy):
    project = copy.work / ".agent-tui" / "config.toml"
    project.parent.mkdir()
    project.write_text("lines_kept = 30\n", encoding="utf-8")
    copy.run("trust", "add", str(copy.work))
    assert "not a project" in copy.run("config", "show").stdout
    copy.insert_before(PROJECT, '*("model", "thinking"', '"lines_kept",\n        ')
    assert (shown(copy)["value"], shown(copy)["layer"]) == (30, "project file")
