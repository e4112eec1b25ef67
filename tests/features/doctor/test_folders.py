import shutil
from collections import namedtuple

import pytest

from agent_tui.features.doctor import machine
from tests.features.doctor.conftest import skip_if_rights_do_not_bind

Usage = namedtuple("Usage", "total used free")


def test_a_folder_that_is_made_later_is_no_fault(environment, find, home):
    check = find(machine.check_folders(environment()))["data"]
    assert (check.state, check.found) == ("info", "~/data, created when needed")
    assert not (home / "data").exists()


def test_a_private_folder_is_fine(environment, find, home):
    (home / "data").mkdir(mode=0o700)
    assert find(machine.check_folders(environment()))["data"].state == "ok"


def test_a_folder_that_others_can_look_into_says_how_to_close_it(
    environment, find, home, monkeypatch
):
    folder = home / "my data"
    folder.mkdir()
    folder.chmod(0o755)
    monkeypatch.setenv("AGENT_TUI_DATA_DIR", str(folder))
    check = find(machine.check_folders(environment()))["data"]
    assert check.state == "warning"
    assert check.advice == f"chmod 700 '{folder}'"


@pytest.mark.parametrize(("mode", "state"), [(0o755, "ok"), (0o775, "warning")])
def test_settings_may_be_read_by_others_but_not_changed(environment, find, home, mode, state):
    (home / "config").mkdir()
    (home / "config").chmod(mode)
    assert find(machine.check_folders(environment()))["config"].state == state


def test_a_file_in_the_way_is_bad(environment, find, home):
    (home / "data").write_text("")
    check = find(machine.check_sessions(environment()))["sessions"]
    assert check.state == "bad"
    assert f"{home}/data is not a folder" in check.found


def test_a_link_to_nowhere_is_in_the_way(environment, find, home):
    (home / "data").symlink_to("nowhere")
    assert find(machine.check_folders(environment()))["data"].state == "bad"


@pytest.mark.parametrize(("name", "state"), [("data", "bad"), ("config", "warning")])
def test_a_folder_that_cannot_be_written_is_said(environment, find, home, name, state):
    (home / name).mkdir(mode=0o500)
    skip_if_rights_do_not_bind(home / name)
    check = find(machine.check_folders(environment()))[name]
    assert check.state == state
    assert "read-only" in check.found
    assert "AGENT_TUI_HOME" in check.advice


def test_sessions_are_counted_and_the_space_for_more_is_told(environment, find, home, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, 10**12))
    folder = home / "data" / "sessions" / "project"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}.jsonl").write_text("x" * 500)
    (folder / "index.sqlite").write_text("")
    check = find(machine.check_sessions(environment()))["disk"]
    assert (check.state, check.found) == ("ok", "3 session files, 1.0 TB free on the disk")


def test_a_full_disk_is_said(environment, find, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(9, 9, 10**6))
    check = find(machine.check_sessions(environment()))["disk"]
    assert (check.state, check.found) == ("warning", "0 session files, 1.0 MB free on the disk")


def test_a_session_folder_of_nobody_is_bad(probed, config):
    config.write_text('session_dir = "~nobody-of-this-name/x"\n')
    check = probed(machine.check_sessions, "sessions")
    assert check.state == "bad"
    assert "~nobody-of-this-name/x" in check.found
