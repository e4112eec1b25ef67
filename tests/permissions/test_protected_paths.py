"""Which files always ask, beside the workspace's own."""

from pathlib import Path

from agent_tui.permissions.protected_paths import ProtectedPaths


def _plain(_folder: Path) -> str:
    return ""


def _guard(
    workspace: Path, *, home: Path = Path("/home/me"), own: Path = Path("/own")
) -> ProtectedPaths:
    return ProtectedPaths(workspace=workspace, home=home, own_folders=(own,), git_risk=_plain)


def test_searching_the_home_folder_is_free_where_it_is_the_workspace():
    home = Path("/home/me")
    assert _guard(home).why_searching_asks(home) == ""
    assert _guard(home / "project").why_searching_asks(home)
    assert _guard(home).why_searching_asks(home.parent)


def test_searching_the_workspace_is_free_though_our_files_are_below_it():
    workspace = Path("/ws")
    own = workspace / "state" / "agent-tui"
    assert _guard(workspace, own=own).why_searching_asks(workspace) == ""
    assert _guard(workspace, own=own).why_searching_asks(own.parent)


def test_a_workspace_among_the_systems_folders_is_written_like_any_other():
    guard = _guard(Path("/opt/project"))
    assert guard.why_system_asks(Path("/opt/project/a.py")) == ""
    assert guard.why_system_asks(Path("/opt/other/a.py"))


def test_a_home_folder_among_the_systems_folders_is_no_part_of_the_system():
    guard = _guard(Path("/ws"), home=Path("/var/home/me"))
    assert guard.why_system_asks(Path("/var/home/me/notes")) == ""
    assert guard.why_system_asks(Path("/var/home/other/notes"))


def test_git_is_free_in_the_workspaces_own_repository_and_asks_in_one_below(tmp_path: Path):
    inner = tmp_path / "vendor" / "lib"
    (tmp_path / ".git").mkdir()
    (inner / ".git").mkdir(parents=True)
    guard = _guard(tmp_path)
    assert guard.why_git_asks(tmp_path) == ""
    assert guard.why_git_asks(tmp_path / "vendor") == ""
    assert guard.why_git_asks(inner)
    assert guard.why_git_asks(tmp_path.parent)


def test_a_name_with_spaces_is_that_of_a_file_with_keys_only_if_the_file_exists(tmp_path: Path):
    guard = _guard(tmp_path)
    for name in ("how to use .env", "my key.pem"):
        assert guard.why_reading_asks(tmp_path / name) == ""
        (tmp_path / name).touch()
        assert "may contain keys" in guard.why_reading_asks(tmp_path / name)


def test_the_settings_of_a_repository_ask_only_if_they_have_a_token(tmp_path: Path):
    config = tmp_path / ".git/config"
    config.parent.mkdir()
    config.write_text('[remote "origin"]\n\turl = https://git.example/ada/token-service\n')
    assert _guard(tmp_path).why_reading_asks(config) == ""
    config.write_text('[remote "origin"]\n\turl = https://decoy@git.example/ada/x\n')
    assert "contains a token" in _guard(tmp_path).why_reading_asks(config)
    assert _guard(tmp_path).why_reading_asks(config.with_name("HEAD")) == ""
