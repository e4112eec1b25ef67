"""``agent-tui rules`` on session files."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from agent_tui.features.rules.review import answer_file, answered_rule, review_rules
from agent_tui.features.rules.subcommand import run_command
from agent_tui.features.trust.subcommand import run_command as trust_command
from agent_tui.sessions.entries import Header
from agent_tui.sessions.store import SessionStore
from tests.features.rules.said import BACKGROUND, say, session
from tests.support.runtime import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(tmp_path)
    monkeypatch.setenv("AGENT_TUI_SESSION_DIR", str(stage.sessions))
    monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(stage.config))
    monkeypatch.setenv("AGENT_TUI_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(stage.workspace)
    store = SessionStore(stage.sessions, "none")
    for entries in (
        map(say, BACKGROUND * 5),
        session("use uv, not pip", day=1),
        session("uv, not pip please", day=2),
        session("write the docs in English, not German", day=3),
    ):
        with store.create(Header(cwd=str(stage.workspace))) as log:
            for entry in entries:
                log.append(entry)
    return stage


def test_offers_are_printed_with_quotes_and_dates(stage: Stage, capsys):
    assert run_command([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Rules from your corrections in 4 sessions"
    assert "Offered: use uv, not pip" in lines
    assert "2026-01-02: “uv, not pip please” · Write it" in lines
    assert not (stage.workspace / "AGENTS.md").exists(), "nothing is written"


def test_json_names_every_quote_and_its_session(stage: Stage, capsys):
    assert run_command(["--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (offer,) = printed["offers"]
    assert offer["text"] == "use uv, not pip"
    assert [quote["at"] for quote in offer["quotes"]] == [
        "2026-01-01T01:00:00Z",
        "2026-01-02T01:00:00Z",
    ]
    assert offer["quotes"][0]["session"]["importedFrom"] is None
    assert (printed["answers"], printed["isOff"], printed["sessions"]) == ([], False, 4)


def test_a_contradicted_rule_of_the_users_own_file_is_printed(stage: Stage, capsys):
    stage.config.mkdir()
    file = stage.config / "AGENTS.md"
    file.write_text("# Mine\n\n- Write the docs in German.\n")
    os.utime(file, (1.7e9, 1.7e9))
    assert run_command(["--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["contradictions"]
    assert (found["path"], found["line"]) == (str(file), 3)
    assert found["quote"]["sentence"] == "write the docs in English, not German"


def test_answers_are_printed(stage: Stage, capsys):
    store = SessionStore(stage.sessions, "none")
    (offer,) = review_rules(store, stage.workspace, ()).offers
    answer_file(stage.workspace).add(answered_rule(offer, "no"))
    assert run_command(["--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["offers"] == []
    assert [(one["line"], one["answer"]) for one in printed["answers"]] == [
        ("use uv, not pip", "no")
    ]


def test_git_tells_when_a_committed_rule_was_written(stage: Stage, capsys):
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    when = {"GIT_AUTHOR_DATE": "2025-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2025-01-01T00:00:00Z"}

    def git(*arguments: str) -> None:
        argv = ["git", *identity, *arguments]
        environ = {**os.environ, **when}
        subprocess.run(argv, cwd=stage.workspace, check=True, capture_output=True, env=environ)

    def lines() -> list[int]:
        assert run_command(["--json"]) == 0
        return [one["line"] for one in json.loads(capsys.readouterr().out)["contradictions"]]

    file = stage.workspace / "AGENTS.md"
    git("init", "-q")
    file.write_text("- Write the docs in German.\n")
    git("add", ".")
    git("commit", "-qm", "Begin")
    assert trust_command(["add", str(stage.workspace)]) == 0
    capsys.readouterr()
    file.write_text("- Write the docs in German.\n- Use tabs.\n")
    os.utime(file, (4e9, 4e9))
    assert lines() == [1], "the commit is older than the words, the file is not"
    file.write_text("- Use tabs.\n- Write the docs in German.\n")
    os.utime(file, (4e9, 4e9))
    assert lines() == [], "git has another line there"
