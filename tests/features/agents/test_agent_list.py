"""The list over real files: what it reads, what it notices, what it leaves alone."""

import os
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.agent.turn.limit_wait import LimitWait, wait_entry
from agent_tui.features.agents import agent_list
from agent_tui.features.agents.agent_list import AgentList, branch_at
from agent_tui.features.agents.rows import AgentRow
from agent_tui.features.importers.claude_code import CLAUDE_CODE
from agent_tui.messages import Cost, JsonObject, ToolCall, Usage
from agent_tui.sessions.entries import Header
from agent_tui.sessions.importers.builder import SessionEnd
from agent_tui.sessions.importers.discovery import look_at_place
from agent_tui.sessions.importers.formats import FORMATS, PI
from agent_tui.sessions.importers.guard import guarded_import
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.sessions.importers import claude_lines, codex_lines, recordings
from tests.support.git_repository import git
from tests.support.session_values import entry, reply, user


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def store_of(home: Path, formats=FORMATS) -> SessionStore:
    return SessionStore(home / "sessions", "none", formats)


def listed(home: Path, formats=FORMATS) -> AgentList:
    return AgentList(store_of(home, formats), home, {})


def rows(found: AgentList) -> list[AgentRow]:
    found.look()
    return found.rows()


def begin(home: Path, *messages, cwd: str = "/w") -> SessionLog:
    log = store_of(home).create(Header(cwd=cwd, provider="p", model_id="m"))
    log.append_many([entry(message) for message in messages])
    return log


def claude(home: Path, *lines, name: str = "a") -> Path:
    path = home / f".claude/projects/-w/{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    claude_lines.write(path, *lines)
    return path


ASKED = claude_lines.said("u1", None, "Mend it.", cwd="/w")
ANSWERED = claude_lines.replied(
    "a1", "u1", claude_lines.text("Well.\nMended."), stop_reason="end_turn", gitBranch="side"
)


def test_ours_say_what_they_do(home: Path):
    found = listed(home)
    priced = reply("It is\nfixed.").model_copy(
        update={"usage": Usage(input=90, output=10, cost=Cost(total=0.25))}
    )
    with begin(home, user("please fix the parser")) as log:
        log.note_state("working")
        (row,) = rows(found)
        assert (row.agent, row.goal, row.state) == ("agent-tui", "fix the parser", "working")
        assert (row.last_line, row.pid) == ("› please fix the parser", os.getpid())
        asked = ToolCall(id="c1", name="bash", arguments={"command": "rm -rf build"})
        log.append(entry(reply("").model_copy(update={"content": (asked,)})))
        log.note_state("waiting")
        (row,) = rows(found)
        assert (row.state, row.last_line, row.needs_you) == ("asking", "bash rm -rf build", True)
        log.append(entry(priced))
        log.note_state("idle")
        (row,) = rows(found)
        assert (row.state, row.last_line, row.needs_you) == ("done", "fixed.", False)
        assert (row.cost_usd, row.context_tokens) == (0.25, 100)
    (row,) = rows(found)
    assert (row.state, row.pid, row.id) == ("done", 0, log.header.id)


def test_a_wait_for_a_limit_is_told_while_it_lasts(home: Path):
    found = listed(home)
    wait = LimitWait(model="p/m", until_s=time.time() + 900)
    with begin(home, user("go on")) as log:
        log.append(wait_entry(wait))
        log.note_state("working")
        (row,) = rows(found)
        assert (row.state, row.needs_you) == ("limit", True)
        log.append(wait_entry(wait.model_copy(update={"state": "over"})))
        (row,) = rows(found)
        assert row.state == "working"
    (row,) = rows(found)
    assert row.state == "ended"


def test_the_state_began_when_it_was_noted(home: Path):
    with begin(home, user("a")) as log:
        log.note_state("waiting")
        assert log.path is not None
        noted_s = time.time() - 500
        os.utime(f"{log.path}.lock", (noted_s, noted_s))
        (row,) = rows(listed(home))
        assert row.since.timestamp() == pytest.approx(noted_s, abs=0.001)


def test_every_agent_is_in_one_list_newest_first(home: Path):
    begin(home, user("ours"), reply("Ok.")).close()
    claude(home, ASKED, ANSWERED)
    codex = home / ".codex/sessions/2026/01/27/rollout-2026-a.jsonl"
    codex.parent.mkdir(parents=True)
    codex_lines.write(codex, codex_lines.head(), codex_lines.said("Build it."))
    recordings.gemini(home)
    recordings.kimi_code(home)
    recordings.opencode(home)
    pi = home / ".pi/agent/sessions/--w--/a.jsonl"
    pi.parent.mkdir(parents=True)
    with SessionLog.create(pi, Header(cwd="/w"), "none") as log:
        log.append_many([entry(user("pi's")), entry(reply("Yes."))])
    found = rows(listed(home))
    agents = {"agent-tui", "Claude Code", "Codex", "Gemini CLI", "Kimi", "opencode", "pi"}
    assert {row.agent for row in found} == agents
    assert [row.since for row in found] == sorted((row.since for row in found), reverse=True)


def test_of_others_their_files_tell_line_context_branch_and_end(home: Path):
    found = listed(home)
    path = claude(home, ASKED)
    (row,) = rows(found)
    assert (row.goal, row.cwd, row.state) == ("Mend it.", Path("/w"), None)
    claude(home, ASKED, ANSWERED)
    (row,) = rows(found)
    assert (row.last_line, row.context_tokens, row.branch) == ("Mended.", 132, "side")
    assert (row.state, row.format_name, row.pid) == ("done", "claude", 0)
    claude(home, ASKED, ANSWERED, claude_lines.said("u2", "a1", "More."))
    (row,) = rows(found)
    assert (row.state, row.last_line) == (None, "Mended.")
    path.unlink()
    assert rows(found) == []


def test_the_end_of_a_codex_turn_is_told(home: Path):
    path = home / ".codex/sessions/2026/01/27/rollout-2026-a.jsonl"
    path.parent.mkdir(parents=True)
    usage = {"input_tokens": 500, "output_tokens": 20, "cached_input_tokens": 100}
    lines = [
        codex_lines.head(),
        codex_lines.said("Build it."),
        codex_lines.replied("Built."),
        codex_lines.event("token_count", info={"last_token_usage": usage}),
    ]
    found = listed(home)
    codex_lines.write(path, *lines)
    (row,) = rows(found)
    assert (row.state, row.last_line, row.context_tokens) == (None, "Built.", 520)
    codex_lines.write(path, *lines, codex_lines.event("task_complete"))
    (row,) = rows(found)
    assert row.state == "done"


@pytest.mark.parametrize("agent", ["gemini", "kimi_code", "kimi_cli"])
def test_recorded_sessions_have_a_last_line_and_a_context(home: Path, agent: str):
    getattr(recordings, agent)(home)
    (row,) = rows(listed(home))
    assert row.goal
    assert row.last_line
    assert row.context_tokens


def test_without_the_readers_of_others_there_are_no_such_rows(home: Path):
    claude(home, ASKED)
    begin(home, user("ours")).close()
    assert [row.agent for row in rows(listed(home, (PI,)))] == ["agent-tui"]


def test_a_look_notices_what_changes_and_nothing_else(home: Path):
    path = claude(home, ASKED)
    log = begin(home, user("a"))
    found = listed(home)
    assert found.look()
    found.rows()
    assert not found.look()
    log.note_state("waiting")
    assert found.look()
    log.append(entry(reply("b")))
    assert found.look()
    with path.open("ab") as file:
        file.write(b"{}\n")
    assert found.look()
    claude(home, ASKED, name="b")
    assert found.look()
    log.close()
    assert found.look()
    assert not found.look()


def test_the_index_that_reading_writes_is_no_reason_to_list_folders_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    log = begin(home, user("a"))
    found = listed(home)
    found.look()
    found.rows()
    searched: list[Path] = []
    search = agent_list.foreign_places
    monkeypatch.setattr(
        agent_list, "foreign_places", lambda *given: (searched.append(home), search(*given))[1]
    )
    log.append(entry(reply("b")))
    assert found.look()
    assert found.rows()[0].last_line == "b"
    assert not found.look()
    assert searched == []
    log.close()
    assert found.look()
    assert searched == [home]


def test_an_old_session_that_goes_on_is_noticed_within_a_few_looks(home: Path):
    paths = [claude(home, ASKED, name=str(number)) for number in range(20)]
    for path in paths:
        os.utime(path, (1_000, 1_000))
    found = listed(home)
    found.look()
    with paths[7].open("ab") as file:
        file.write(b"{}\n")
    assert sum(found.look() for _ in range(6)) == 1


def test_a_look_reads_no_session_and_rows_read_only_what_changed(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    read: list[Path] = []
    head, end = agent_list.read_foreign_head, agent_list.read_own_end
    monkeypatch.setattr(
        agent_list, "read_foreign_head", lambda place: (read.append(place.path), head(place))[1]
    )
    monkeypatch.setattr(agent_list, "read_own_end", lambda path: (read.append(path), end(path))[1])
    first, second = claude(home, ASKED), claude(home, ASKED, name="b")
    with begin(home, user("a")) as log:
        found = listed(home)
        found.look()
        assert read == []
        assert len(found.rows(2)) == 2
        assert len(read) == 2
        found.rows()
        assert {*read} == {first, second, log.path}
        read.clear()
        log.note_state("working")
        claude(home, ASKED, ANSWERED, name="b")
        found.look()
        found.rows()
        assert read == [second]


def test_nothing_is_written_beside_the_sessions_of_others(home: Path):
    claude(home, ASKED, ANSWERED)
    recordings.opencode(home)
    before = {path: path.lstat().st_mtime_ns for path in home.rglob("*")}
    rows(listed(home))
    assert {path: path.lstat().st_mtime_ns for path in home.rglob("*")} == before


def test_a_database_that_changed_is_read_again(home: Path):
    place = recordings.opencode(home)
    found = listed(home)
    assert len(rows(found)) == 1
    with closing(sqlite3.connect(place.parent)) as opened, opened:
        opened.execute("UPDATE session SET title = 'Another title'")
    (after,) = rows(found)
    assert after.goal == "Another title"


def test_far_down_in_a_database_nothing_is_read_again(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(agent_list, "_REREAD_OF_DATABASE", 0)
    place = recordings.opencode(home)
    found = listed(home)
    (before,) = rows(found)
    with closing(sqlite3.connect(place.parent)) as opened, opened:
        opened.execute("UPDATE session SET title = 'Another title'")
    assert rows(found) == [before]
    assert not found.look()


def test_what_a_database_keeps_beside_it_counts_as_a_change(home: Path):
    place = recordings.opencode(home)
    os.utime(place.parent, (1_000, 1_000))
    before = look_at_place(place, FORMATS[0])
    assert before is not None
    assert (before.is_in_database, before.mtime_ns) == (True, 1_000_000_000_000)
    beside = place.parent.with_name("opencode.db-wal")
    beside.touch()
    os.utime(beside, (2_000, 2_000))
    after = look_at_place(place, FORMATS[0])
    assert after is not None
    assert after.mtime_ns == 2_000_000_000_000


def test_a_reader_that_fails_at_the_end_leaves_the_rest_of_the_row(home: Path):
    def fail(_end: SessionEnd, _line: JsonObject) -> None:
        raise ZeroDivisionError

    assert CLAUDE_CODE.finder is not None
    failing = replace(CLAUDE_CODE, finder=replace(CLAUDE_CODE.finder, read_end=fail))
    claude(home, ASKED, ANSWERED)
    (row,) = rows(listed(home, (guarded_import(failing),)))
    assert (row.goal, row.last_line, row.state) == ("Mend it.", "", None)


def test_the_branch_and_the_worktree_of_a_folder(tmp_path: Path):
    main, side, plain = tmp_path / "main", tmp_path / "side", tmp_path / "plain"
    for folder in (main, plain):
        folder.mkdir()
    git(main, "init", "-q", "-b", "trunk")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", "-b", "topic", str(side))
    (main / "below").mkdir()
    assert branch_at(main / "below") == ("trunk", "")
    assert branch_at(side) == ("topic", "side")
    git(main, "checkout", "-q", "--detach")
    assert branch_at(main) == ("", "")
    assert branch_at(plain) == ("", "")
    assert branch_at(tmp_path / "gone") == ("", "")
    (plain / ".git").write_text("gitdir: /proc/self\n")
    assert branch_at(plain) == ("", "")


def test_damage_hides_no_other_session(home: Path):
    claude(home, ASKED)
    for name, damage in (("b", b"{torn"), ("c", b"\0" * 5_000), ("d", b"[" * 100_000)):
        path = home / f".claude/projects/-w/{name}.jsonl"
        path.write_bytes(damage)
    folder = home / "sessions/--w--"
    folder.mkdir(parents=True)
    (folder / "a_b.jsonl").write_bytes(b"\xff\n{")
    (folder / "link.jsonl").symlink_to(home / "nowhere")
    os.mkfifo(folder / "pipe.jsonl")
    assert [row.goal for row in rows(listed(home))] == ["Mend it."]
