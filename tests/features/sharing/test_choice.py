"""What the user chose to share is kept outside the project, and a damaged file shares nothing."""

from pathlib import Path

import pytest

from agent_tui.errors import ConfigError
from agent_tui.features.sharing.choice import Choice, ChoiceFile


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChoiceFile:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    return ChoiceFile(tmp_path / "work")


def test_nothing_is_allowed_until_it_is_chosen(file: ChoiceFile) -> None:
    assert file.read("git@host:x") == Choice()
    assert not file.read("git@host:x").allowed


def test_a_choice_counts_for_one_address(file: ChoiceFile, tmp_path: Path) -> None:
    file.change("a", lambda choice: choice.model_copy(update={"allowed": "private"}))
    assert file.read("a").allowed == "private"
    assert file.read("b").allowed == ""
    assert ChoiceFile(tmp_path / "other").read("a").allowed == ""
    assert not file.path.is_relative_to(tmp_path / "work")
    assert file.path.stat().st_mode & 0o077 == 0


def test_a_damaged_file_is_an_error_and_stays(file: ChoiceFile) -> None:
    file.path.parent.mkdir(parents=True)
    file.path.write_text('{"remotes": {"a": {"allowed": "everybody"}}}')
    with pytest.raises(ConfigError, match="damaged"):
        file.read("a")
    with pytest.raises(ConfigError):
        file.change("a", lambda choice: choice)
    assert "everybody" in file.path.read_text()
