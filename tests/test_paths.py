import os
import stat
from pathlib import Path

import pytest

from agent_tui import paths


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        ("AGENT_TUI_CONFIG_DIR", paths.user_config_dir),
        ("AGENT_TUI_DATA_DIR", paths.user_data_dir),
        ("AGENT_TUI_CACHE_DIR", paths.user_cache_dir),
        ("AGENT_TUI_SESSION_DIR", paths.default_session_dir),
    ],
)
def test_a_variable_moves_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, folder
):
    monkeypatch.setenv(variable, str(tmp_path))
    assert folder() == tmp_path
    monkeypatch.delenv(variable)
    assert folder() != tmp_path


def test_one_variable_moves_all_folders_and_those_of_one_kind_are_stronger(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for variable in paths.FOLDER_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path))
    moved = (
        paths.user_config_dir,
        paths.user_data_dir,
        paths.user_cache_dir,
        paths.default_session_dir,
        paths.log_file,
    )
    assert [str(place().relative_to(tmp_path)) for place in moved] == [
        "config",
        "data",
        "cache",
        "data/sessions",
        "data/log/agent-tui.log",
    ]
    monkeypatch.setenv("AGENT_TUI_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert paths.user_cache_dir() == tmp_path / "elsewhere"
    assert paths.user_data_dir() == tmp_path / "data"


def test_a_user_without_any_home_has_the_root_for_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 77)  # nobody's
    paths.ensure_home()
    assert Path.home() == Path("/")


def test_a_folder_below_a_file_cannot_be_written_and_one_to_be_made_can(tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert "file is not a folder" in paths.why_not_writable(tmp_path / "file" / "a" / "b")
    assert paths.why_not_writable(tmp_path / "a" / "b") == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_somebody_else_cannot_be_written(tmp_path: Path):
    tmp_path.chmod(0o555)
    assert "read-only" in paths.why_not_writable(tmp_path / "a")


def test_sessions_and_projects_are_kept_with_the_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("AGENT_TUI_SESSION_DIR", raising=False)
    monkeypatch.setenv("AGENT_TUI_DATA_DIR", str(tmp_path))
    assert paths.default_session_dir() == tmp_path / "sessions"
    assert paths.project_dir(Path("/a")).parent == tmp_path / "projects"


def test_the_log_is_a_file_of_our_own():
    assert paths.log_file().name == "agent-tui.log"


def test_folder_names_are_readable_and_unique():
    one, two = (
        paths.cwd_slug(Path("/home/me/my project")),
        paths.cwd_slug(Path("/home/me/my-project")),
    )
    assert one.startswith("home-me-my-project-")
    assert one != two
    assert paths.cwd_slug(Path("/")).startswith("root-")


@pytest.mark.parametrize("path", ["/" + "deep/" * 100 + "end", "/日本語/コード", "/a\nb", "/-x"])
def test_folder_names_are_short_plain_and_begin_with_no_dash(path: str):
    slug = paths.cwd_slug(Path(path))
    assert len(slug) <= 69
    assert slug.isascii()
    assert not slug.startswith("-")
    assert "/" not in slug
    assert "\n" not in slug


def test_every_folder_that_had_to_be_made_is_private(tmp_path: Path):
    made = paths.make_private_dir(tmp_path / "a" / "b" / "c")
    assert made.is_dir()
    for folder in (made, made.parent, made.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert paths.make_private_dir(made) == made


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path):
    tmp_path.chmod(0o755)
    paths.make_private_dir(tmp_path / "a")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
