import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from agent_tui.cli.doctor import folders
from agent_tui.cli.doctor.folders import FileSystem
from tests.cli.doctor.conftest import skip_if_rights_do_not_bind

Usage = namedtuple("Usage", "total used free")


def looked(environment, name: str, path: Path):
    (check,) = folders.check_folder(environment, name, path)
    return check


def test_a_folder_that_is_made_later_is_no_fault(environment, home):
    check = looked(environment(), "data", home / "data" / "deeper")
    assert (check.state, check.found) == ("info", "~/data/deeper, created when needed")
    assert not (home / "data").exists()


def test_a_private_folder_is_fine(environment, home):
    (home / "data").mkdir(mode=0o700)
    assert looked(environment(), "data", home / "data").state == "ok"


def test_a_folder_that_others_can_look_into_says_how_to_close_it(environment, home):
    folder = home / "my data"
    folder.mkdir()
    folder.chmod(0o755)
    check = looked(environment(), "data", folder)
    assert check.state == "warning"
    assert check.advice == f"chmod 700 '{folder}'"


@pytest.mark.parametrize(("mode", "state"), [(0o755, "ok"), (0o775, "warning")])
def test_settings_may_be_read_by_others_but_not_changed(environment, home, mode, state):
    (home / "config").mkdir()
    (home / "config").chmod(mode)
    assert looked(environment(), "config", home / "config").state == state


def test_a_file_in_the_way_is_bad(environment, home):
    (home / "data").write_text("")
    check = looked(environment(), "sessions", home / "data" / "sessions")
    assert check.state == "bad"
    assert "~/data is not a folder" in check.found


def test_a_link_to_nowhere_is_in_the_way(environment, home):
    (home / "data").symlink_to("nowhere")
    assert looked(environment(), "data", home / "data").state == "bad"


@pytest.mark.parametrize(("name", "state"), [("data", "bad"), ("config", "warning")])
def test_a_folder_that_cannot_be_written_is_said(environment, home, name, state):
    (home / "data").mkdir(mode=0o500)
    skip_if_rights_do_not_bind(home / "data")
    check = looked(environment(), name, home / "data")
    assert check.state == state
    assert "chmod u+rwx" in check.advice


def test_a_folder_of_another_person_is_said_to_be(environment, home, monkeypatch):
    (home / "data").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    check = looked(environment(), "data", home / "data")
    assert check.state == "bad"
    assert "another user" in check.found
    assert "sudo chown" in check.advice


def test_a_folder_that_depends_on_where_we_are_is_bad(environment):
    check = looked(environment(), "data", Path("~/.local"))
    assert check.state == "bad"
    assert "HOME" in check.advice


def test_sessions_are_counted(environment, find, home):
    folder = home / "data" / "sessions" / "project"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}.jsonl").write_text("x" * 500)
        (folder / f"{number}.jsonl").chmod(0o600)
    (folder / "index.sqlite").write_text("")
    (folder / "gone.jsonl").symlink_to("nowhere")
    check = find(folders.check_sessions(environment()))["session files"]
    assert (check.state, check.found) == ("ok", "3, 1.5 kB")
    (folder / "0.jsonl").chmod(0o644)
    check = find(folders.check_sessions(environment()))["session files"]
    assert check.state == "warning"
    assert "read 1 of them" in check.found
    assert check.advice.startswith("chmod -R go-rwx")


def test_a_session_folder_that_cannot_be_read_is_bad(environment, find, home):
    folder = home / "data" / "sessions" / "project"
    folder.mkdir(parents=True)
    folder.chmod(0)
    skip_if_rights_do_not_bind(folder)
    check = find(folders.check_sessions(environment()))["session files"]
    folder.chmod(0o700)
    assert check.state == "bad"
    assert str(folder) in check.advice


def test_a_session_folder_of_nobody_is_bad(environment, find, config):
    config.write_text('session_dir = "~nobody-of-this-name/x"\n')
    check = find(folders.check_sessions(environment()))["sessions"]
    assert check.state == "bad"
    assert "~nobody-of-this-name/x" in check.found


@pytest.mark.parametrize(
    ("kind", "said"), [("nfs4", "locks"), ("tmpfs", "lost when"), ("ext4", "")]
)
def test_a_disk_that_does_not_keep_things_is_said(environment, monkeypatch, kind, said):
    monkeypatch.setattr(folders, "file_system", lambda path: FileSystem(Path("/"), kind))
    checks = list(folders.check_disk(environment()))
    assert [check.state for check in checks] == (["ok", "warning"] if said else ["ok"])
    assert said in checks[-1].found


def test_a_full_disk_is_said(environment, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(9, 9, 10**6))
    first = next(iter(folders.check_disk(environment())))
    assert (first.state, first.found) == ("warning", "1.0 MB free")


@pytest.mark.parametrize(("mode", "state"), [(0o600, "ok"), (0o640, "warning")])
def test_the_log_is_the_persons_alone(environment, home, mode, state):
    assert list(folders.check_log(environment())) == []
    log = home / "data" / "log" / "agent-tui.log"
    log.parent.mkdir(parents=True)
    log.write_text("x")
    log.chmod(mode)
    (check,) = folders.check_log(environment())
    assert check.state == state
