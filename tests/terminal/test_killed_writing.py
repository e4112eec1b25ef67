"""After a kill -9, the unsent draft and the reply that was on the screen are there again."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from agent_tui.ui.prompt.draft_keeper import RESTORED
from tests.support.openai_script import Reply
from tests.support.openai_server import OpenAiServer
from tests.support.patience import PATIENCE_S
from tests.support.pty_program import PtyProgram


def wait_for_file(folder: Path, pattern: str, words: bytes, *, is_there: bool = True) -> None:
    """Until a file that matches has `words`, or none has."""
    until = time.monotonic() + PATIENCE_S
    while any(words in content for content in contents(folder, pattern)) != is_there:
        assert time.monotonic() < until
        time.sleep(0.01)


def contents(folder: Path, pattern: str) -> Iterator[bytes]:
    for path in folder.rglob(pattern):
        with suppress(FileNotFoundError):
            yield path.read_bytes()


def kill(program: PtyProgram) -> None:
    os.killpg(program.process.pid, signal.SIGKILL)
    program.wait_until_end()


@pytest.mark.thorough
def test_a_draft_and_a_reply_survive_a_kill(environ: Mapping[str, str], tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    with OpenAiServer() as server:
        server.play(Reply(text=("The answer ", "is half"), ending="hang"))
        argv = [sys.executable, "-m", "agent_tui", "-m", "test", "--base-url", server.base_url]
        argv += ["--api-key-env", "TEST_KEY"]
        known = {**environ, "TEST_KEY": "sk-test"}
        with PtyProgram(argv, environ=known, cwd=work) as program:
            program.wait_for("ctx:")
            program.send("zebra question\r")
            program.wait_for("is half")
            program.send("yonder thought")
            wait_for_file(tmp_path, "*.reply", b"is half")
            wait_for_file(tmp_path, "*.draft", b"yonder thought")
            kill(program)
        with PtyProgram([*argv, "-c"], environ=known, cwd=work) as program:
            program.wait_for(RESTORED)
            program.wait_for("yonder thought")
            program.wait_for("The answer is half")
            kill(program)
        assert list(tmp_path.rglob("*.reply")) == []
        (session,) = (tmp_path / "data" / "sessions").rglob("*.jsonl")
        assert session.read_bytes().count(b"The answer is half") == 1
        with PtyProgram([*argv, "-c"], environ=known, cwd=work) as program:
            program.wait_for("yonder thought")
            kill(program)
        assert session.read_bytes().count(b"The answer is half") == 1


@pytest.mark.thorough
def test_a_draft_from_before_the_first_message_returns_in_its_folder(
    environ: Mapping[str, str], tmp_path: Path
):
    work = tmp_path / "work"
    work.mkdir()
    argv = [sys.executable, "-m", "agent_tui", "-m", "scripted/tour"]
    with PtyProgram(argv, environ=environ, cwd=work) as program:
        program.wait_for("ctx:")
        program.send("yonder thought")
        wait_for_file(tmp_path, "*.draft", b"yonder thought")
        with PtyProgram(argv, environ=environ, cwd=work) as beside:
            beside.wait_for("ctx:")
            beside.send("another")
            wait_for_file(tmp_path, "*.draft", b"another")
            assert "yonder" not in beside.text, "it is in the prompt of a running program"
            beside.send("\x03")
            wait_for_file(tmp_path, "*.draft", b"another", is_there=False)
            kill(beside)
        kill(program)
    with PtyProgram(argv, environ=environ, cwd=work) as program:
        program.wait_for(RESTORED)
        program.wait_for("yonder thought")
