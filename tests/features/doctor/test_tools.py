from pathlib import Path

import pytest

from agent_tui.features.doctor import machine


@pytest.mark.parametrize(("name", "said"), [("git", "not found"), ("bash", "/bin/sh")])
def test_a_program_that_is_not_there_is_said_with_what_happens_instead(
    environment, find, programs, name, said
):
    check = find(machine.check_tools(environment()))[name]
    assert check.state == "warning"
    assert said in check.found
    assert check.advice


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("git", "git version 2.44.0"),
        ("bash", "GNU bash, version 5.2.15(1)-release"),
    ],
)
def test_the_version_of_a_program_is_told(environment, find, programs, name, printed):
    programs(name, f"echo '{printed}'")
    check = find(machine.check_tools(environment()))[name]
    assert (check.state, check.found) == ("ok", printed)


@pytest.mark.parametrize("script", ["exit 3", "kill -9 $$", "exec /nowhere/at/all"])
def test_a_program_that_fails_is_not_taken_for_a_good_one(environment, find, programs, script):
    programs("git", script)
    check = find(machine.check_tools(environment()))["git"]
    assert check.state == "warning"
    assert "--version failed" in check.found


@pytest.mark.parametrize(
    ("closed", "state", "says"),
    [
        (set(), "info", "replaces them when it starts"),
        ({"folder"}, "warning", "cannot replace"),
        ({"folder", "file"}, "info", "read-only"),
    ],
)
def test_files_with_a_second_name_are_reported(
    environment, find, tmp_path: Path, monkeypatch, closed: set[str], state, says
):
    file = tmp_path / "file"
    places = {tmp_path if name == "folder" else file for name in closed}
    monkeypatch.setattr(machine, "find_shared_files", lambda: [file])
    monkeypatch.setattr(machine.os, "access", lambda path, _mode: path not in places)
    check = find(machine.check_own_files(environment()))["own files"]
    assert (check.state, says in check.found) == (state, True)
