import json
import re
from pathlib import Path

import pytest

from agent_tui.features.compact_file.subcommand import run_command
from agent_tui.sessions.context import build_context
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import newest_change, undo_mark
from tests.features.compact_file.scene import (
    KEYS,
    as_json,
    tokens_of,
)
from tests.support.context_checks import context_bytes
from tests.support.openai_server import OpenAiServer, Reply


def test_the_tiers_can_be_named(capsys: pytest.CaptureFixture[str], session: Path) -> None:
    assert as_json(capsys, str(session), "--model", "none", "--strategy", "tiered")["fallback"]


def test_a_strategy_copies_the_session_and_puts_its_edits_after_it(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    before = session.read_bytes()
    argv = [str(session), "--model", "none", "--strategy", "hybrid"]
    given = as_json(capsys, *argv, "--window", "14000")
    assert session.read_bytes() == before
    assert set(given) == KEYS
    assert given["strategy"] == "hybrid"
    assert given["statistics"]["user_messages"] > 0
    assert given["statistics"]["after"] == given["tokens_after"]
    assert given["tokens_before"] - sum(given["tiers"].values()) == given["tokens_after"]
    assert "Never touch lock0.txt." in given["pinned"]
    with (
        SessionLog.open(session, read_only=True) as log,
        SessionLog.open(Path(given["path"])) as child,
    ):
        entries = child.path_entries()
        assert entries[: len(log.entries)] == log.entries
        assert tokens_of(child) == given["tokens_after"]
        assert child.header.parent_session == str(session)
        taken_back = (*entries, undo_mark(newest_change(entries)))
        assert context_bytes(taken_back) == context_bytes(log.path_entries())


def test_a_strategy_in_the_settings_is_the_one_that_is_used(
    capsys: pytest.CaptureFixture[str], session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TUI_COMPACTION__STRATEGY", "hybrid")
    dry = as_json(capsys, str(session), "--model", "none", "--dry-run")
    assert (dry["strategy"], dry["path"]) == ("hybrid", None)
    tiered = as_json(capsys, str(session), "--model", "none", "--strategy", "tiered")
    assert (tiered["strategy"], tiered["statistics"]) == ("tiered", {})


def test_where_a_strategy_is_not_enough_the_tiers_take_over_and_say_why(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    argv = [str(session), "--model", "none", "--strategy", "hybrid", "--window", "2000"]
    assert run_command([*argv, "--json"]) == 0
    out, told = capsys.readouterr()
    assert json.loads(out)["strategy"] == "tiered"
    assert json.loads(out)["summary"]
    assert "The tiers took over." in told


@pytest.mark.slow
def test_a_model_of_the_program_says_old_messages_in_fewer_words(
    capsys: pytest.CaptureFixture[str], session: Path, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    config = tmp_path / "config" / "config.toml"
    said = "\n".join(f"#{n} Step 0: looked closely, nothing new." for n in range(1, 20))
    with OpenAiServer() as server:
        config.write_text(f'base_url = "{server.base_url}"\n')
        server.play(Reply(text=said))
        argv = [str(session), "--model", "some-model", "--strategy", "hybrid"]
        given = as_json(capsys, *argv, "--focus", "the greeting")
        assert len(server.chats) == 1
        assert "the greeting" in json.dumps(server.chats[0].body)
    with SessionLog.open(Path(given["path"])) as child:
        shown = [m.message.text for m in build_context(child.path_entries()).messages]
    assert sum(text.startswith("Step 0: looked closely, nothing new.") for text in shown) == 19
    assert "Never touch lock3.txt." in shown[6]


def test_what_a_strategy_did_is_told_without_json(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    assert run_command([str(session), "--model", "none", "--strategy", "hybrid"]) == 0
    _, told = capsys.readouterr()
    assert re.search(
        r"^  hybrid: \d+ user messages, \d+ assistant messages, 5 protected\.$", told, re.M
    )
    assert "fewer words" in told


def test_decisions_are_logged_for_who_asks(
    capsys: pytest.CaptureFixture[str],
    session: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    argv = [str(session), "--model", "none", "--strategy", "hybrid", "--dry-run"]
    as_json(capsys, *argv)
    assert not list(tmp_path.rglob("*.log"))
    monkeypatch.setenv("AGENT_TUI_DEBUG_CONTEXT", "1")
    as_json(capsys, *argv)
    (log,) = tmp_path.rglob("*.log")
    lines = log.read_text().splitlines()
    assert len(lines) == 25
    assert all(line.startswith("context: ") for line in lines)
    assert sum(line.endswith("kept: protected") for line in lines) == 5
