import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.errors import AgentTuiError, CompactionError, SessionError, UsageError
from agent_tui.features.compact_file.subcommand import run_command
from agent_tui.features.context.subcommand import run_command as show_context
from agent_tui.features.trust.subcommand import run_command as trust
from agent_tui.messages import AssistantMessage, TextContent, UserMessage
from agent_tui.providers.keys import secret_variables
from agent_tui.sessions.entries import CompactionEntry, Header, MessageEntry
from agent_tui.sessions.importers.formats import FORMATS, detect_format
from agent_tui.sessions.importers.import_session import import_session
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.features.compact_file.scene import (
    GOAL,
    KEYS,
    SUMMARY,
    TOO_SHORT,
    as_json,
    snapshot,
    tokens_of,
)
from tests.sessions.importers import claude_lines
from tests.support.importers.formats import ALL_FORMATS
from tests.support.openai_server import Failure, OpenAiServer, Reply, bad_key, failure
from tests.support.talk import Talk
from tests.support.trajectories import some_trajectories, trajectory

ADDITIONS = """\
<notes>
## Critical Context
- lock1.txt belongs to step 1 alone
</notes>
<keep>
</keep>"""


def readable_by_the_program(file: Path, folder: Path) -> Path:
    """`file`, or where only the tests can read it, what importing it gives."""
    if detect_format(file, ALL_FORMATS) in {known.name for known in FORMATS}:
        return file
    store = SessionStore(folder, "none", ALL_FORMATS)
    return import_session(store, file, cwd=folder).path


@pytest.mark.parametrize(
    "name", [param for param in some_trajectories() if param.values[0] != TOO_SHORT]
)
def test_every_recorded_session_gets_a_smaller_child_and_stays_as_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    file = readable_by_the_program(trajectory(name), tmp_path / "imported")
    before = snapshot(file.parent)
    given = as_json(capsys, str(file), "--model", "none")
    assert snapshot(file.parent) == before
    assert set(given) == KEYS
    assert list(given["tiers"]) == ["0", "1", "2", "3"]
    assert given["tokens_before"] - sum(given["tiers"].values()) == given["tokens_after"]
    assert 0 < given["tokens_after"] < given["tokens_before"]
    assert given["fallback"] is True
    with SessionLog.open(Path(given["path"])) as child:
        assert child.warnings == ()
        assert tokens_of(child) == given["tokens_after"]
        assert child.header.parent_session == str(file)
        carried = child.header.compaction
        assert carried is not None
        assert carried.summary == given["summary"]
        assert list(carried.modified_files) == given["modified_files"]
        assert list(carried.read_files) == given["read_files"]


def test_one_very_long_piped_message_is_shown_once_and_can_be_recalled(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = " ".join(f"word{number}" for number in range(20_000))
    store = SessionStore(tmp_path / "elsewhere", "none")
    with store.create(Header(id="a1b2c3", cwd="/project", provider="p", model_id="m")) as log:
        entry = log.append(MessageEntry(message=UserMessage(content=words)))
        assert log.path is not None
        first = as_json(capsys, str(log.path), "--model", "none", "--window", "16000")
    with SessionLog.open(Path(first["path"])) as child:
        reply = AssistantMessage(content=(TextContent(text="Words."),), stop_reason="stop")
        child.append_many([MessageEntry(message=reply)])
        child.append_many([MessageEntry(message=UserMessage(content="And now?"))])
    again = as_json(capsys, first["path"], "--model", "none", "--window", "6000", "--dry-run")
    for summary in (first["summary"], again["summary"]):
        said = summary.partition("<said-by-the-person>")[2].partition("</said-by-the-person>")[0]
        assert said.count("word0 word1 ") == 1
        assert f"[recall {entry.id}]" in said
        assert "[recall ]" not in summary


def test_the_window_that_was_given_is_that_of_the_new_session(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    windows: list[int] = []
    for given in (["--window", "14000"], []):
        path = as_json(capsys, str(session), "--model", "none", *given)["path"]
        assert show_context([path, "--json"]) == 0
        windows.append(json.loads(capsys.readouterr().out)["window"])
    assert windows[0] == 14_000 != windows[1]


def test_a_dry_run_writes_nothing_and_says_the_same(
    capsys: pytest.CaptureFixture[str], session: Path, tmp_path: Path
) -> None:
    before = snapshot(tmp_path)
    dry = as_json(capsys, str(session), "--model", "none", "--dry-run")
    assert snapshot(tmp_path) == before
    assert dry.pop("path") is None
    wet = as_json(capsys, str(session), "--model", "none")
    assert Path(wet.pop("path")).is_file()
    assert {**dry, "seconds": 0} == {**wet, "seconds": 0}
    assert "Never touch lock0.txt." in dry["pinned"]


def test_the_child_stands_beside_our_sessions_and_goes_on(
    capsys: pytest.CaptureFixture[str], session: Path, sessions: Path
) -> None:
    path = Path(as_json(capsys, str(session), "--model", "none")["path"])
    assert path.parent.parent == sessions
    with SessionLog.open(path) as child:
        first = child.entries[0]
        assert isinstance(first, CompactionEntry)
        assert (child.header.cwd, child.header.provider, child.header.model_id) == (
            "/project",
            "p",
            "m",
        )
        assert first.tokens_after < first.tokens_before
    found = SessionStore(sessions).list()
    assert [one.path for one in found] == [path]


def test_the_folder_for_the_child_can_be_named(
    capsys: pytest.CaptureFixture[str], session: Path, sessions: Path, tmp_path: Path
) -> None:
    argv = [str(session), "--model", "none", "--session-dir", str(tmp_path / "there")]
    path = Path(as_json(capsys, *argv)["path"])
    assert path.is_relative_to(tmp_path / "there")
    assert not sessions.exists()


def test_a_path_that_is_printed_is_good_from_every_folder(
    capsys: pytest.CaptureFixture[str], session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = [os.path.relpath(session), "--model", "none", "--session-dir", "here"]
    path = Path(as_json(capsys, *argv)["path"])
    monkeypatch.chdir("/")
    with SessionLog.open(path) as child:
        assert child.header.parent_session == str(session)


def test_without_json_the_path_alone_goes_to_standard_output(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    assert run_command([str(session), "--model", "none"]) == 0
    out, told = capsys.readouterr()
    assert Path(out.rstrip("\n")).is_file()
    assert "tokens (-" in told
    assert "tier 3  summary" in told
    assert run_command([str(session), "--model", "none", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("<said-by-the-person>")


def test_a_session_is_found_by_its_id_too(
    capsys: pytest.CaptureFixture[str], session: Path, tmp_path: Path
) -> None:
    argv = ["a1b2", "--model", "none", "--dry-run", "--session-dir", str(tmp_path / "elsewhere")]
    by_id = as_json(capsys, *argv)
    assert by_id["tokens_before"] == as_json(capsys, str(session), *argv[1:])["tokens_before"]


def test_a_session_another_process_writes_is_compacted_as_it_stands(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    hold = (
        "import sys; from pathlib import Path; from agent_tui.sessions.log import SessionLog\n"
        "log = SessionLog.open(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", hold, str(session)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        before = snapshot(session.parent)
        assert Path(as_json(capsys, str(session), "--model", "none")["path"]).is_file()
        assert snapshot(session.parent) == before
        other.communicate()


@pytest.mark.thorough
def test_a_smaller_window_and_a_lower_target_leave_less(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = [str(trajectory("pi/before-compaction.jsonl")), "--model", "none", "--dry-run"]
    wide = as_json(capsys, *argv, "--window", "1000000")
    narrow = as_json(capsys, *argv, "--window", "100000", "--target", "0.2")
    assert narrow["tokens_after"] < wide["tokens_after"]
    least = as_json(capsys, *argv, "--target", "1e-320")
    assert least["tokens_after"] < narrow["tokens_after"]


def test_the_target_is_of_the_window_that_the_settings_mean(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    argv = [str(session), "--model", "none", "--window", "1000000", "--target", "0.0001"]
    assert run_command(argv) == 0
    assert "Still above the target of 12 tokens." in capsys.readouterr().err


def test_a_target_can_be_given_in_tokens(capsys: pytest.CaptureFixture[str], session: Path) -> None:
    argv = [str(session), "--model", "none", "--window", "1000000", "--target", "9000"]
    assert run_command(argv) == 0
    assert "Within the target of 9,000 tokens." in capsys.readouterr().err
    assert as_json(capsys, *argv)["target_tokens"] == 9_000


def test_the_format_can_be_named_where_it_cannot_be_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = claude_lines.said("u0", None, "Go on. " * 200)
    talk: list[dict[str, object]] = [said]
    for number in range(4):
        parent, text = str(talk[-1]["uuid"]), claude_lines.text("x y z " * 400)
        talk.append(claude_lines.replied(f"a{number}", parent, text))
        talk.append(claude_lines.said(f"u{number + 1}", f"a{number}", "x y z " * 400))
    modes = [{"type": "mode"}] * 200
    file = claude_lines.write(tmp_path / "run", *modes, *talk)
    with pytest.raises(SessionError, match=r"not a session that can be imported.*claude, codex"):
        run_command([str(file), "--model", "none"])
    given = as_json(capsys, str(file), "--model", "none", "--from", "claude")
    assert given["tokens_after"] < given["tokens_before"]
    with pytest.raises(SessionError, match="Codex"):
        run_command([str(file), "--model", "none", "--from", "codex"])


def test_a_damaged_session_is_compacted_and_the_damage_told(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    lines = session.read_bytes().split(b"\n")
    session.write_bytes(b"\n".join([*lines[:6], b"{torn", *lines[7:]]))
    assert run_command([str(session), "--model", "none"]) == 0
    out, told = capsys.readouterr()
    assert Path(out.rstrip("\n")).is_file()
    assert "warning: line 7: not valid JSON" in told


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"\x00\xff" * 500, "is not a session that can be imported"),
        (b"Dear diary,\n", "is not a session that can be imported"),
        (b'{"type":"session","version":3,"id":"x"}\n', "Nothing to compact"),
    ],
)
def test_files_with_nothing_to_compact_are_one_clear_error(
    tmp_path: Path, sessions: Path, content: bytes, problem: str
) -> None:
    file = tmp_path / "file.jsonl"
    file.write_bytes(content)
    with pytest.raises(AgentTuiError, match=problem):
        run_command([str(file), "--model", "none"])
    assert not sessions.exists()


def test_a_session_no_larger_than_a_summary_is_left_alone(sessions: Path) -> None:
    with pytest.raises(CompactionError, match="Nothing to compact"):
        run_command([str(trajectory(TOO_SHORT)), "--model", "none"])
    assert not sessions.exists()


def test_folders_and_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="is a folder"):
        run_command([str(tmp_path), "--model", "none"])
    with pytest.raises(SessionError, match=r"gone\.jsonl does not exist"):
        run_command(["gone.jsonl", "--model", "none"])
    with pytest.raises(SessionError, match='no session "nobody"'):
        run_command(["nobody", "--model", "none"])


def test_a_folder_that_cannot_be_written_is_named_and_the_session_kept(
    session: Path, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file")
    before = session.read_bytes()
    argv = [str(session), "--model", "none", "--session-dir", str(tmp_path / "taken")]
    with pytest.raises(SessionError, match="taken"):
        run_command(argv)
    assert session.read_bytes() == before


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (
            ["--strategy", "magic"],
            "'magic'. Available: tiered, hybrid, agent. See",
        ),
        (["--window", "0"], "'0' is not a number of tokens"),
        (["--window", "12k"], "'12k' is not a number of tokens"),
        (["--target", "1.5"], "'1.5' is neither a fraction between 0 and 1 nor"),
        (["--target", "999"], "'999' is neither a fraction between 0 and 1 nor"),
        (["--target", "nan"], "'nan' is neither a fraction between 0 and 1 nor"),
        (["--target", "inf"], "'inf' is neither a fraction between 0 and 1 nor"),
        (["--from", "emacs"], "invalid choice: 'emacs'"),
    ],
)
def test_what_cannot_be_asked_for_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], session: Path, argv: list[str], problem: str
) -> None:
    with pytest.raises(SystemExit) as exit_:
        run_command([str(session), *argv])
    assert exit_.value.code == 2
    assert problem in capsys.readouterr().err


def test_a_model_that_does_not_exist_is_a_usage_error(session: Path) -> None:
    with pytest.raises(UsageError, match="No model named 'nonesuch'"):
        run_command([str(session), "--model", "nonesuch"])


@pytest.mark.thorough
def test_a_model_of_the_program_writes_the_summary_with_the_focus(
    capsys: pytest.CaptureFixture[str], session: Path, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    config = tmp_path / "config" / "config.toml"
    with OpenAiServer() as server:
        config.write_text(f'base_url = "{server.base_url}"\n')
        server.play(Reply(text=SUMMARY))
        argv = [str(session), "--model", "some-model", "--focus", "the greeting"]
        given = as_json(capsys, *argv)
        assert given["fallback"] is False
        assert GOAL in given["summary"]
        assert len(server.chats) == 1
        assert "the greeting" in json.dumps(server.chats[0].body)
        assert server.chats[0].body["model"] == "some-model"


@pytest.mark.thorough
@pytest.mark.parametrize("second", [Reply(text=ADDITIONS), failure(400, "No."), bad_key()])
def test_a_model_that_left_room_is_asked_for_what_it_left_out(
    capsys: pytest.CaptureFixture[str],
    session: Path,
    tmp_path: Path,
    second: Reply | Failure,
) -> None:
    (tmp_path / "config").mkdir()
    config = tmp_path / "config" / "config.toml"
    with OpenAiServer() as server:
        config.write_text(f'base_url = "{server.base_url}"\n')
        server.play(Reply(text=f"<notes>\n{SUMMARY}\n</notes>\n<keep>\n#1\n</keep>"), second)
        given = as_json(capsys, str(session), "--model", "some-model", "--target", "4000")
        first, more = (chat.body["messages"] for chat in server.chats)
    assert given["fallback"] is False
    assert given["note"] == ""
    assert given["tokens_after"] <= 4_000
    assert GOAL in given["summary"]
    assert more[: len(first)] == first
    assert [message["role"] for message in more[len(first) :]] == ["assistant", "user"]
    assert 'the user said "Step 1. Never touch lock1.txt.' in json.dumps(more[-1]).replace("\\", "")
    is_added = isinstance(second, Reply)
    assert ("- lock1.txt belongs to step 1 alone" in given["summary"]) is is_added


def test_without_a_model_or_key_code_writes_the_summary_and_says_so(
    capsys: pytest.CaptureFixture[str], session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in secret_variables():
        monkeypatch.delenv(name, raising=False)
    assert run_command([str(session), "--dry-run"]) == 0
    out, told = capsys.readouterr()
    assert out.startswith("<said-by-the-person>")
    assert "No model chosen and no key found" in told


def test_where_the_tiers_leave_too_little_to_sum_up_all_of_it_is_summed_up(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    talk = Talk()
    talk.user("Read it.")
    talk.tool("bash", {"command": "cat log"}, "word " * 1_200)
    for number in range(8):
        talk.user(f"And {number}?")
        talk.reply("Yes.")
    store = SessionStore(tmp_path / "elsewhere", "none")
    with store.create(Header(id="d4", cwd="/project")) as log:
        log.append_many(talk.path)
    argv = [str(log.path), "--model", "none", "--window", "8000", "--target", "0.02"]
    given = as_json(capsys, *argv)
    assert [given["tiers"][tier] for tier in "012"] == [0, 0, 0]
    assert given["tokens_after"] < given["tokens_before"]


def test_a_trusted_project_names_the_model_and_another_is_not_obeyed(
    capsys: pytest.CaptureFixture[str], session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in secret_variables():
        monkeypatch.delenv(name, raising=False)
    project = Path.cwd() / ".agent-tui" / "config.toml"
    project.parent.mkdir()
    project.write_text('model = "nonesuch"\n', encoding="utf-8")
    assert run_command([str(session), "--dry-run"]) == 0
    assert "nonesuch" not in capsys.readouterr().err
    trust(["add", str(Path.cwd())])
    assert run_command([str(session), "--dry-run"]) == 0
    assert "No model named 'nonesuch'" in capsys.readouterr().err


def test_the_command_builds_no_conversation_and_loads_no_network_libraries() -> None:
    code = "import sys, agent_tui.features.compact_file.subcommand; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    packages = {name.partition(".")[0] for name in modules}
    assert packages.isdisjoint({"textual", "rich", "litellm", "tiktoken"})
    assert modules.isdisjoint(
        {"agent_tui.cli.compose", "agent_tui.agent.runtime", "agent_tui.tools.registry"}
    )
