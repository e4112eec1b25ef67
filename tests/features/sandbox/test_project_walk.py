"""What a walk through a project finds, however many folders it has."""

import os
import socket
from pathlib import Path

import pytest

from agent_tui.features.sandbox import project_walk
from agent_tui.features.sandbox.project_walk import ProjectWalk


def _make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")


def _names(root: Path, paths: list[Path]) -> set[str]:
    return {str(path.relative_to(root)) for path in paths}


@pytest.mark.thorough
def test_nothing_is_missed_among_ten_thousand_folders(tmp_path: Path):
    _make(tmp_path, *(f"a{number // 100}/b{number}/" for number in range(10_000)))
    walk = ProjectWalk([tmp_path])
    walk.look()
    _make(tmp_path, "z/y/x/w/.git/config", "a0/b0/c/.env", "a99/b9999/d/.vscode/tasks.json")
    found = walk.look()
    assert _names(tmp_path, found.gits) == {"z/y/x/w/.git"}
    assert _names(tmp_path, found.secrets) == {"a0/b0/c/.env"}
    assert _names(tmp_path, list(found.obeyed)) == {"a99/b9999/d/.vscode"}
    assert not walk.left_out


def test_all_that_is_new_is_visited_where_the_first_look_met_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(project_walk, "MOST_FOLDERS", 4)
    _make(tmp_path, *(f"{name}/deep/.env" for name in "abc"))
    walk = ProjectWalk([tmp_path])
    assert walk.look().secrets == []
    assert _names(tmp_path, list(map(Path, walk.left_out))) == {"a/deep", "b/deep", "c/deep"}
    _make(tmp_path, *(f"new{number}/" for number in range(20)))
    _make(tmp_path, "new19/x/.git/config", "c/made/.env", "c/deep/unknown/.git/config")
    found = walk.look()
    assert _names(tmp_path, found.gits) == {"new19/x/.git"}
    assert _names(tmp_path, found.secrets) == {"c/made/.env"}


def test_what_was_found_before_is_found_by_the_next_walk_beyond_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _make(tmp_path, "z/deep/.env")
    walk = ProjectWalk([tmp_path])
    walk.look()
    monkeypatch.setattr(project_walk, "MOST_FOLDERS", 4)
    _make(tmp_path, *(f"a{number}/" for number in range(20)))
    later = ProjectWalk([tmp_path])
    later.first = walk.first
    assert _names(tmp_path, later.look().secrets) == {"z/deep/.env"}


def test_in_folders_that_builds_fill_only_repositories_and_keys_directly_there_count(
    tmp_path: Path,
):
    _make(tmp_path, ".venv/.git/config", "node_modules/.git/config", "node_modules/a/.git/config")
    _make(tmp_path, "node_modules/a/AGENTS.md", ".svn/a/.git/config")
    _make(tmp_path, ".terraform/terraform.tfstate", "venv/.env", "node_modules/a/.env")
    found = ProjectWalk([tmp_path]).look()
    assert _names(tmp_path, found.gits) == {
        *(".venv/.git", "node_modules/.git", "node_modules/a/.git", ".svn/a/.git"),
    }
    assert not found.obeyed
    assert _names(tmp_path, found.secrets) == {".terraform/terraform.tfstate", "venv/.env"}


def test_what_builds_fill_is_left_out_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(project_walk, "MOST_FOLDERS", 6)
    _make(tmp_path, *(f"node_modules/{number}/" for number in range(9)), "a/b/c/.env")
    walk = ProjectWalk([tmp_path])
    assert _names(tmp_path, walk.look().secrets) == {"a/b/c/.env"}
    assert len(walk.left_out) == 8
    assert all("node_modules" in path for path in walk.left_out)


def test_later_looks_tell_which_folders_are_new(tmp_path: Path):
    _make(tmp_path, "old/.env")
    walk = ProjectWalk([tmp_path])
    walk.look()
    _make(tmp_path, "new/below/.env", "old/x.env")
    walk.look()
    walk.look()
    assert walk.new == {f"{tmp_path}/new", f"{tmp_path}/new/below"}


def test_a_root_is_visited_whatever_its_name_is(tmp_path: Path):
    _make(tmp_path, "venv/sub/.env")
    root = tmp_path / "venv"
    assert _names(root, ProjectWalk([root]).look().secrets) == {"sub/.env"}


def test_no_file_that_a_command_makes_has_a_folder_skipped(tmp_path: Path):
    _make(tmp_path, "pyvenv.cfg", "lib/x/.git/config", "bin/AGENTS.md", "share/.env")
    found = ProjectWalk([tmp_path]).look()
    assert _names(tmp_path, [*found.gits, *found.obeyed, *found.secrets]) == {
        *("lib/x/.git", "bin/AGENTS.md", "share/.env"),
    }


def test_a_folder_that_is_moved_or_gone_is_noticed(tmp_path: Path):
    _make(tmp_path, "a/b/.env")
    walk = ProjectWalk([tmp_path])
    walk.look()
    (tmp_path / "a").rename(tmp_path / "c")
    assert _names(tmp_path, walk.look().secrets) == {"c/b/.env"}
    (tmp_path / "c/b/.env").unlink()
    assert walk.look().secrets == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter all folders")
@pytest.mark.parametrize("mode", [0o000, 0o300, 0o600])
def test_what_nobody_may_enter_is_closed_until_the_person_opens_it(tmp_path: Path, mode: int):
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / ".env").write_text("x")
    closed.chmod(mode)
    walk = ProjectWalk([tmp_path])
    for _ in range(2):
        found = walk.look()
        assert (found.closed, found.secrets) == ([closed], [])
    closed.chmod(0o700)
    found = walk.look()
    assert (found.closed, found.secrets) == ([], [closed / ".env"])


def test_links_and_pipes_in_a_git_folder_are_found_but_no_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    git = tmp_path / ".git"
    (git / "logs").mkdir(parents=True)
    (git / "HEAD").touch()
    walk = ProjectWalk([tmp_path])
    assert walk.look().irregular == []
    os.mkfifo(git / "index")
    (git / "logs" / "HEAD").symlink_to("x")
    (git / ".#COMMIT_EDITMSG").symlink_to("ada@machine.1:2")  # Emacs writes a message
    monkeypatch.chdir(git)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind("fsmonitor--daemon.ipc")
        assert set(walk.look().irregular) == {git / "index", git / "logs" / "HEAD"}


def test_a_repository_is_found_by_each_name_that_some_file_system_takes_for_git(tmp_path: Path):
    entries = [tmp_path / place / name for place, name in (("a", ".GIT"), ("b", ".g\u200cit"))]
    for entry in entries:
        entry.mkdir(parents=True)
    assert sorted(ProjectWalk([tmp_path]).look().gits) == entries


@pytest.mark.parametrize(
    ("links", "held"),
    [
        ({"docs": "CACHE/x"}, {"docs"}),
        ({"docs": "CACHE/none/y"}, {"docs"}),
        ({"docs": "CACHE/out/doc"}, {"docs"}),
        ({"docs": "CACHE/back/src"}, {"docs"}),
        ({"docs": "CACHE/x/../../src"}, {"docs"}),
        ({"a": "b", "b": "CACHE/out"}, {"b"}),
        ({"a": "CACHE/back/b", "b": "src"}, {"a"}),
        ({"docs": "OUT/doc", "a": "src"}, set()),
    ],
)
def test_a_link_is_a_way_if_any_step_lies_where_nobody_looks(
    tmp_path: Path, links: dict[str, str], held: set[str]
):
    project, cache, out = (tmp_path / name for name in ("project", "cache", "out"))
    _make(tmp_path, "project/src/f", "cache/x/f", "out/doc/f")
    (cache / "out").symlink_to(out)
    (cache / "back").symlink_to(project)
    walk = ProjectWalk([project], unchecked=[f"{cache}/"])
    walk.look()
    for name, aim in links.items():
        aim = aim.replace("CACHE", str(cache)).replace("OUT", str(out))
        (project / name).symlink_to(aim)
    assert _names(project, walk.look().ways) == held


def test_the_bytecode_of_a_followed_file_is_followed_but_not_that_of_packages(tmp_path: Path):
    conf = "__pycache__/.ycm_extra_conf.cpython-311.pyc"
    _make(tmp_path, conf, f"a/{conf}", f"venv/{conf}", "__pycache__/b.cpython-311.pyc")
    found = ProjectWalk([tmp_path]).look().obeyed
    assert _names(tmp_path, list(found)) == {conf, f"a/{conf}"}
