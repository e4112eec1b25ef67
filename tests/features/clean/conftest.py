"""An empty home for what is listed and removed."""

from pathlib import Path

import pytest

from agent_tui import paths


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all the program's folders."""
    for variable in paths.FOLDER_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "own"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "own"
