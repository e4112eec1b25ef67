"""The program started where things are missing, closed or oddly named."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_tui.cli import main
from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.compose import compose
from agent_tui.errors import SessionError
from agent_tui.sessions.entries import FORMAT_VERSION, Header, SessionInfoEntry
from agent_tui.sessions.log import SessionLog
from tests.support.killed_program import old_file
from tests.support.openai_server import OpenAiServer, Reply

PROGRAM = [sys.executable, "-m", "agent_tui"]
pytestmark = pytest.mark.thorough
TOUR = ["--demo", "--permission-mode", "full", "-p"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {n: v for n, v in os.environ.items() if not n.endswith("_API_KEY")}
    own = {f"AGENT_TUI_{n}_DIR": str(tmp_path / n.lower()) for n in ("CONFIG", "DATA", "CACHE")}
    return {**kept, **own}


def run(
    *argv: str | bytes, cwd: Path | bytes, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *argv], capture_output=True, stdin=subprocess.DEVNULL, cwd=cwd, env=environ
    )


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--cwd", "~nobody-of-this-name/x", "-p", "x"], 2, "~nobody-of-this-name/x"),
        (["--cwd", "circle", "-p", "x"], 2, "circle"),
        (["-p", "x", "-r", "~nobody-of-this-name"], 1, "There is no session"),
        (["sessions", "show", "a" * 400], 1, "There is no session"),
        (["--session-dir", "~nobody-of-this-name/x", "-p", "x"], 2, "no such home folder"),
        (["-c", "--no-session", "-p", "x"], 2, "not allowed with argument"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_clear_line(tmp_path, environ, argv, code, said):
    (tmp_path / "circle").symlink_to("circle")
    done = run(*argv, cwd=tmp_path, environ={**environ, "AGENT_TUI_MODEL": "scripted/tour"})
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("named", ["nosuch", "noise.txt", "headless.jsonl"])
def test_a_session_that_is_none_is_refused_before_there_is_a_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noise.txt").write_text("127.0.0.1 localhost\n")
    line = {"type": "message", "id": "1", "message": {"role": "user", "content": "x"}}
    (tmp_path / "headless.jsonl").write_text(json.dumps(line) + "\n")
    arguments = parse_arguments(["-r", named, "-m", "scripted/tour"])
    if named == "headless.jsonl":  # damaged, yet something of it can be read
        assert compose(arguments, is_interactive=True).resume == str(tmp_path / named)
        return
    with pytest.raises(SessionError, match=r"There is no session|is not a session file"):
        compose(arguments, is_interactive=True)


@pytest.mark.parametrize("argv", [[*TOUR, "x"], ["sessions", "list"]])
def test_a_removed_folder_is_said(tmp_path, environ, argv):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD" && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *PROGRAM, *argv], capture_output=True, cwd=gone, env=environ
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"agent-tui: The current folder no longer exists.")


def test_a_tour_without_room_for_its_folder_says_which(tmp_path, environ):
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = run(*TOUR, "x", cwd=tmp_path, environ={**environ, "AGENT_TUI_CACHE_DIR": str(blocked)})
    assert done.returncode == 2
    assert str(blocked) in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.fixture
def homeless(tmp_path: Path) -> dict[str, str]:
    """An environment whose home folder can be neither read nor made."""
    (tmp_path / "in-the-way").write_text("")
    own = {n: v for n, v in os.environ.items() if not n.startswith(("AGENT_TUI_", "XDG_"))}
    return {**own, "HOME": str(tmp_path / "in-the-way" / "home"), "TEST_KEY": "sk-0"}


@pytest.mark.parametrize("flags", [[], ["--no-session"]])
def test_without_a_home_that_can_be_written_a_model_answers_and_what_is_lost_is_said(
    tmp_path, homeless, flags
):
    with OpenAiServer() as server:
        server.play(Reply("still here"))
        asked = ["-m", "m", "--base-url", server.base_url, "--api-key-env", "TEST_KEY"]
        done = run(*asked, *flags, "-p", "x", cwd=tmp_path, environ=homeless)
    assert (done.returncode, done.stdout) == (0, b"still here\n")
    said = done.stderr.decode()
    assert said.count("Sessions are not saved") == (0 if flags else 1)
    assert "cannot be read" not in said
    assert "in-the-way" not in said or not flags


def test_a_folder_for_sessions_that_was_named_and_cannot_be_written_is_an_error(tmp_path, homeless):
    named = tmp_path / "in-the-way" / "sessions"
    done = run(*TOUR, "x", "--session-dir", str(named), cwd=tmp_path, environ=homeless)
    assert done.returncode != 0
    assert b"in-the-way" in done.stderr


UNPRIVILEGED = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Starts a program for which also root's permissions hold."""


@pytest.mark.skipif(sys.platform != "linux", reason="drops a capability of Linux")
@pytest.mark.parametrize("locked", ["sessions/**/", "sessions/*/", "sessions/*/*.jsonl"])
def test_a_session_that_cannot_be_written_is_gone_on_with_in_memory(tmp_path, environ, locked):
    with OpenAiServer() as server:
        server.play(*(Reply(f"answer {number}") for number in range(2)))
        asked = ["-m", "m", "--base-url", server.base_url, "--api-key-env", "TEST_KEY", "-p"]
        keys = {**environ, "TEST_KEY": "sk-0"}
        assert run(*asked, "first", cwd=tmp_path, environ=keys).returncode == 0
        (path,) = (tmp_path / "data").glob("sessions/*/*.jsonl")
        before = path.read_bytes()
        for found in (tmp_path / "data").glob(locked):
            found.chmod(found.stat().st_mode & ~0o222)
        done = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED, *PROGRAM, *asked, "second", "-c"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            cwd=tmp_path,
            env=keys,
        )
        sent = json.dumps(server.requests[-1].body)
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (0, b"answer 1\n"), said
    assert all(word in sent for word in ("first", "answer 0", "second"))
    assert (path.read_bytes(), list(path.parent.iterdir())) == (before, [path])
    assert said.count("nothing is saved") + said.count("Sessions are not saved") == 1, said


def test_a_session_of_a_newer_format_is_left_alone_and_said(tmp_path, environ):
    path = tmp_path / "newer.jsonl"
    path.write_bytes(old_file(FORMAT_VERSION + 1, 3, str(tmp_path)))
    before = path.read_bytes()
    done = run("-m", "scripted/tour", "-p", "x", "-r", path.name, cwd=tmp_path, environ=environ)
    assert (done.returncode, done.stdout, path.read_bytes()) == (1, b"", before)
    assert b"Update agent-tui to continue it" in done.stderr


@pytest.mark.parametrize("closed", [pytest.param("<&-", marks=pytest.mark.slow), "<&- >&- 2>&-"])
def test_closed_standard_streams_neither_stop_it_nor_reach_the_session(tmp_path, environ, closed):
    command = [*PROGRAM, *TOUR, "hello"]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *command],
        capture_output=True,
        cwd=tmp_path,
        env=environ,
    )
    assert done.returncode == 0
    (session,) = (tmp_path / "data" / "sessions").rglob("*.jsonl")
    kinds = [json.loads(line)["type"] for line in session.read_text().splitlines()]
    assert kinds[0] == "session"
    assert set(kinds[1:]) == {"message", "custom"}  # custom: what the call changed in files


def test_a_folder_whose_name_is_not_utf8_has_sessions_like_any_other(tmp_path, environ):
    folder = os.fsencode(tmp_path) + b"/odd\xff"
    Path(os.fsdecode(folder)).mkdir()
    first = run(*TOUR, "hello", "--output-format", "json", cwd=folder, environ=environ)
    assert first.returncode == 0
    assert first.stderr.startswith(b"agent-tui: mode full, no sandbox:")
    assert first.stderr.count(b"\n") == 1
    again = run("-c", "-p", "more", "--output-format", "json", cwd=folder, environ=environ)
    assert json.loads(again.stdout)["session_id"] == json.loads(first.stdout)["session_id"]
    listed = run("sessions", "list", cwd=folder, environ=environ)
    assert json.loads(first.stdout)["session_id"][:8] in listed.stdout.decode()


@pytest.mark.parametrize(
    "encoding", ["ascii", pytest.param("utf-8:strict", marks=pytest.mark.slow)]
)
def test_output_is_utf8_whatever_the_locale_says(tmp_path, environ, encoding):
    odd = {**environ, "PYTHONIOENCODING": encoding}
    prompt = "naïve 漢字 \udcff"
    done = run(*TOUR, prompt, "--output-format", "stream-json", cwd=tmp_path, environ=odd)
    assert done.returncode == 0
    first = json.loads(done.stdout.decode("utf-8").splitlines()[0])
    assert first["text"].startswith("naïve 漢字")


def test_an_error_that_names_a_hostile_session_does_not_steer_the_terminal(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("AGENT_TUI_SESSION_DIR", str(tmp_path))
    log = SessionLog.create(tmp_path / "s.jsonl", Header(cwd="/"))
    log.append(SessionInfoEntry(name="refactor \x1b]52;c;cm0=\x07the parser"))
    log.close()
    assert main.run(["sessions", "show", "refactor the parser"]) == 1
    said = capsys.readouterr().err
    assert "refactor" in said.partition("Similar")[2]
    assert "\x1b" not in said


class InterruptedStdin:
    """A pipe nothing comes from until the person presses Ctrl+C."""

    def __init__(self) -> None:
        self.buffer = self

    def isatty(self) -> bool:
        return False

    def read(self) -> bytes:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()  # it would only note a first Ctrl+C and read on
        raise KeyboardInterrupt


def test_ctrl_c_while_the_prompt_is_read_ends_the_program(monkeypatch):
    monkeypatch.setattr(sys, "stdin", InterruptedStdin())
    assert main.run(TOUR) == 130


def test_what_was_wrong_with_a_resumed_session_is_said(tmp_path, environ):
    assert run(*TOUR, "hello", cwd=tmp_path, environ=environ).returncode == 0
    (session,) = (tmp_path / "data" / "sessions").rglob("*.jsonl")
    with session.open("ab") as file:
        file.write(b'{"type":"message","id":"torn')
    done = run("-c", "-p", "more", cwd=tmp_path, environ=environ)
    assert done.returncode == 0
    assert "recovered" in done.stderr.decode()
    assert "cut off in the middle" in done.stderr.decode()
