from pathlib import Path

import pytest

from agent_tui.sessions.entries import Header
from agent_tui.sessions.store import SessionStore
from tests.features.compact_file.scene import work


@pytest.fixture(autouse=True)
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of our sessions; not there yet."""
    for name in ("config", "data", "cache"):
        monkeypatch.setenv(f"AGENT_TUI_{name.upper()}_DIR", str(tmp_path / name))
    monkeypatch.delenv("AGENT_TUI_SESSION_DIR", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return tmp_path / "data" / "sessions"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session of ours with enough in it, outside the folder of our sessions."""
    store = SessionStore(tmp_path / "elsewhere", "none")
    with store.create(Header(id="a1b2c3", cwd="/project", provider="p", model_id="m")) as log:
        log.append_many(work())
        assert log.path is not None
        return log.path
