"""``agent-tui agents``."""

import json
from pathlib import Path

import jsonschema
import pytest

from agent_tui.errors import UsageError
from agent_tui.features.agents.shell import run_command
from agent_tui.sessions.entries import Header
from agent_tui.sessions.store import SessionStore
from tests.features.agents.test_rows import SCHEMA
from tests.sessions.importers import claude_lines
from tests.support.session_values import entry, reply, user


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, in a home with no other files."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("AGENT_TUI_SESSION_DIR", str(tmp_path / "sessions"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert run_command(argv) == 0
    return capsys.readouterr().out


def test_all_sessions_are_listed_or_those_of_this_folder_or_that_need_the_user(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, work: Path
):
    path = tmp_path / ".claude/projects/-w/a.jsonl"
    path.parent.mkdir(parents=True)
    claude_lines.write(path, claude_lines.said("u1", None, "Mend it.\x1b[31m", cwd="/w"))
    store = SessionStore(tmp_path / "sessions", "none")
    with store.create(Header(cwd=str(work))) as log:
        log.append_many([entry(user("fix the parser")), entry(reply("Fixed."))])
        log.note_state("waiting")
        lines = printed(capsys).splitlines()
        assert lines[-1] == "2 sessions: 1 needs you"
        assert any("fix the parser – Fixed." in line and "asking" in line for line in lines)
        assert any("Mend it." in line and "\x1b" not in line for line in lines)
        assert printed(capsys, "--here").splitlines()[-1] == "1 session: 1 needs you"
        assert printed(capsys, "-n", "1").splitlines()[1:] == [
            "2 sessions (the newest 1 are listed): 1 needs you"
        ]
        rows = json.loads(printed(capsys, "--json"))
        assert {row["agent"] for row in rows} == {"agent-tui", "Claude Code"}
        for row in rows:
            jsonschema.validate(row, SCHEMA)
        assert [row["id"] for row in json.loads(printed(capsys, "--json", "--needs-me"))] == [
            log.header.id
        ]
        log.note_state("idle")
        assert json.loads(printed(capsys, "--json", "--needs-me")) == []


def test_nothing_to_list(capsys: pytest.CaptureFixture[str]):
    assert printed(capsys) == "0 sessions\n"
    assert json.loads(printed(capsys, "--json", "--here")) == []


def test_without_a_home_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    def fail() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", fail)
    with pytest.raises(UsageError, match="HOME"):
        run_command([])
