"""Two programs at one session, or at one folder of them: nothing is lost, and one is told."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent_tui.sessions.entries import Entry, Header
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.support.killed_program import foreign_file
from tests.support.openai_server import OpenAiServer, Reply
from tests.support.patience import PATIENCE_S
from tests.support.runtime import GOOD_SUMMARY
from tests.support.session_values import entry, reply, user

PROGRAM = [sys.executable, "-m", "agent_tui"]
pytestmark = pytest.mark.thorough


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {n: v for n, v in os.environ.items() if not n.endswith("_API_KEY")}
    return {**kept, "AGENT_TUI_HOME": str(tmp_path / "home"), "TEST_KEY": "sk-0"}


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as server:
        yield server


def start(folder: Path, environ: Mapping[str, str], *argv: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*PROGRAM, *argv],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ended(program: "subprocess.Popen[bytes]") -> tuple[int, str, str]:
    out, err = program.communicate(timeout=PATIENCE_S)
    return program.returncode, out.decode(), err.decode()


def a_long_session(folder: Path) -> tuple[Path, tuple[Entry, ...]]:
    store = SessionStore(folder / "home" / "data" / "sessions")
    with store.create(Header(cwd=str(folder), id="long")) as log:
        for turn in range(30):
            log.append_many([entry(user(f"prompt {turn}")), entry(reply("An answer. " * 200))])
    assert log.path is not None
    return log.path, log.entries


@pytest.mark.parametrize("prompt", ["go on", "/compact"])
def test_the_second_program_at_a_session_is_told_who_has_it_and_changes_nothing(
    tmp_path: Path, environ: dict[str, str], server: OpenAiServer, prompt: str
) -> None:
    path, before = a_long_session(tmp_path)
    server.play(Reply(GOOD_SUMMARY, ending="hold"), *(Reply(GOOD_SUMMARY),) * 9)
    asked = ("-m", "m", "--base-url", server.base_url, "--api-key-env", "TEST_KEY", "-r", "long")
    first = start(tmp_path, environ, *asked, "-p", prompt)
    assert server.wait_for_chats()
    now = path.read_bytes()
    for other in ("go on", "/compact"):
        code, out, err = ended(start(tmp_path, environ, *asked, "-p", other))
        assert (code, out) == (1, "")
        assert f"is open in another agent-tui (pid {first.pid})" in err
    assert path.read_bytes() == now
    server.release()
    code, _, err = ended(first)
    assert code == 0, err
    files = sorted(path.parent.glob("*.jsonl"))
    assert len(files) == (2 if prompt == "/compact" else 1)
    for file in files:
        with SessionLog.open(file) as log:
            assert log.warnings == ()
            kept = log.entries
        if file == path:
            assert kept[: len(before)] == before
    assert list(path.parent.glob("*.tmp")) == []


def test_sessions_can_be_listed_while_others_are_taken_over(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_bytes(foreign_file("foreign", 3_000, str(tmp_path)))
    importing = [
        start(tmp_path, environ, "sessions", "import", str(foreign), "--json") for _ in range(3)
    ]
    seen: set[str] = set()
    while any(program.poll() is None for program in importing):
        code, out, err = ended(start(tmp_path, environ, "sessions", "list", "--all", "--json"))
        assert (code, err) == (0, "")
        for session in json.loads(out or "[]"):
            assert session["messageCount"] == 3_000
            seen.add(session["id"])
    made = [json.loads(ended(program)[1]) for program in importing]
    assert seen <= {one["id"] for one in made}
    for one in made:
        with SessionLog.open(Path(one["path"])) as log:
            assert (log.warnings, len(log.entries) >= 3_000) == ((), True)
