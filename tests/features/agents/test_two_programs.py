"""What another program does is seen while it happens, and when it is killed."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_tui.errors import AgentTuiError
from agent_tui.features.agents.agent_list import AgentList
from agent_tui.features.agents.programs import stop_program
from agent_tui.features.agents.rows import AgentRow
from agent_tui.sessions.store import SessionStore
from tests.support.openai_server import OpenAiServer, Reply
from tests.support.patience import PATIENCE_S
from tests.support.session_values import conversation, session_bytes

pytestmark = pytest.mark.thorough


@pytest.fixture
def slow() -> Iterator[OpenAiServer]:
    """A server whose reply stands still after its first words."""
    with OpenAiServer() as server:
        yield server


def start(home: Path, server: OpenAiServer) -> "subprocess.Popen[bytes]":
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "AGENT_TUI_HOME": str(home)}
    environ |= {"AGENT_TUI_SANDBOX": "off", "OPENAI_API_KEY": "none"}
    asked = ("-m", "openai/mock", "--base-url", server.base_url, "-p", "count the files")
    return subprocess.Popen(
        [sys.executable, "-m", "agent_tui", *asked],
        cwd=home,
        env={**environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def until(listed: AgentList, holds: Callable[[AgentRow], bool]) -> AgentRow:
    """The only row, once it `holds`."""
    give_up_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_s:
        listed.look()
        rows = listed.rows()
        if rows and holds(rows[0]):
            return rows[0]
        time.sleep(0.02)
    raise AssertionError(listed.rows())


def of(home: Path) -> AgentList:
    return AgentList(SessionStore(home / "data/sessions", "none"), home, {})


def test_a_run_works_and_is_done(tmp_path: Path, slow: OpenAiServer):
    slow.play(Reply(text="There are 3.", ending="hold"))
    listed = of(tmp_path)
    with start(tmp_path, slow) as program:
        row = until(listed, lambda row: row.state == "working")
        assert (row.pid, row.goal, row.cwd) == (program.pid, "count the files", tmp_path)
        slow.release()
        program.wait(PATIENCE_S)
    row = until(listed, lambda row: row.state == "done")
    assert (row.last_line, row.pid) == ("There are 3.", 0)


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_run_that_is_killed_or_stopped_has_ended(tmp_path: Path, slow: OpenAiServer, how: str):
    slow.play(Reply(text="There are 3.", ending="hold"))
    listed = of(tmp_path)
    with start(tmp_path, slow) as program:
        row = until(listed, lambda row: row.state == "working")
        if how == "killed":
            program.kill()
        else:
            assert stop_program(row.path) == program.pid
        assert program.wait(PATIENCE_S) != 0
    row = until(listed, lambda row: row.state == "ended")
    assert row.pid == 0
    with pytest.raises(AgentTuiError, match="No program"):
        stop_program(row.path)


def test_a_pid_in_a_lock_that_nobody_holds_gets_no_signal(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(session_bytes(conversation()))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        path.with_name("a.jsonl.lock").write_text(f"{other.pid} working")
        with pytest.raises(AgentTuiError, match="No program"):
            stop_program(path)
        assert other.poll() is None
        other.communicate(b"\n")
        assert other.returncode == 0
