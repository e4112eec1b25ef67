"""The conversation by lines in a real pseudo-terminal: no escape sequence, nothing written over."""

import contextlib
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from agent_tui.cli.main import run
from tests.support.patience import PATIENCE_S
from tests.support.pty_program import PtyProgram

PLAIN = [sys.executable, "-m", "agent_tui", "--plain"]
PROMPT = "] > "
QUESTION = "e: no, with a comment: "


class Talk:
    """Waits for words that come after those waited for before, then types."""

    def __init__(self, program: PtyProgram) -> None:
        self._program = program
        self._read = 0

    def after(self, word: str, keys: str = "", timeout_s: float = PATIENCE_S) -> None:
        self._program.wait_for(word, timeout_s, since=self._read)
        self._read = self._program.text.index(word, self._read) + len(word)
        self._program.send(keys)

    def interrupt(self, prompt: str, answer: str) -> None:
        """Interrupt at `prompt`; once more if that came before the program waited for keys.

        Python sees a signal in C code only when that is woken up; the two are then one to it.
        """
        self.after(prompt)
        for _ in range(10):
            os.kill(self._program.process.pid, signal.SIGINT)
            with contextlib.suppress(TimeoutError):
                self.after(answer, timeout_s=3.0)
                return
        raise TimeoutError(f"{answer!r} never came")


def assert_only_lines(output: str) -> None:
    assert "\x1b" not in output
    assert not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)", output)


@pytest.mark.thorough
@pytest.mark.parametrize("term", ["xterm-256color", pytest.param("dumb", marks=pytest.mark.slow)])
def test_a_tour_by_lines_from_the_first_turn_to_the_way_back(demo, environ, tmp_path, term):
    argv = [*demo, "--plain", "begin"]
    with PtyProgram(argv, environ={**environ, "TERM": term}, cwd=tmp_path) as program:
        talk = Talk(program)
        talk.after("You: begin")
        talk.after("agent-tui: Hello!")
        talk.after("Question: run this command?")
        talk.after(QUESTION, "perhaps\n")
        talk.after("is not a choice")
        talk.after(QUESTION, "y\n")
        talk.after("Tool bash failed: sh run-tests.sh")
        talk.after("Line 6 removed:")
        talk.interrupt(QUESTION, "Stopped.")
        talk.after(PROMPT, "/compact\n")
        talk.after("Context compacted")
        talk.after(PROMPT, "/resume\n")
        talk.after("1. begin, ")
        talk.after("for none: ", "1\n")
        talk.after("You: begin")
        talk.interrupt(PROMPT, "again to quit")
        talk.after(PROMPT, "\x04")
        assert program.wait_until_end() == 0
        assert "Resume it with: agent-tui --plain -r " in program.text
        assert_only_lines(program.output)


@pytest.mark.thorough
def test_what_is_in_force_is_asked_first_and_ways_to_a_model_are_told(environ, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Be brief.")
    config = Path(environ["AGENT_TUI_CONFIG_DIR"])
    config.mkdir()
    (config / "config.toml").write_text("plain = true\n")
    environ = {**environ, "TERM": "dumb"}
    with PtyProgram([*PLAIN[:-1]], environ=environ, cwd=folder) as program:
        talk = Talk(program)
        program.send("hello\nhal")
        talk.after("Sent later because it was typed before the question: 'hello\\nhal'")
        talk.after("Question: Trust this folder?")
        talk.after("These would take effect:")
        talk.after("    AGENTS.md")
        talk.after("asks again next time: ", "n\n")
        talk.after("Not read: AGENTS.md (the folder is not trusted).")
        talk.after("No model chosen yet.")
        talk.after("Looking for available models.")
        talk.after("No model chosen.")
        talk.after(f"{PROMPT}hal", "lo\n")
        talk.after("No model chosen.")
        talk.after(PROMPT)
        os.kill(program.process.pid, signal.SIGTERM)
        assert program.wait_until_end() == 128 + signal.SIGTERM
        assert_only_lines(program.output)


def test_a_terminal_without_a_screen_is_told_of_plain(environ, tmp_path):
    argv = [sys.executable, "-m", "agent_tui", "--demo"]
    with PtyProgram(argv, environ={**environ, "TERM": "dumb"}, cwd=tmp_path) as program:
        assert program.wait_until_end() == 2
        assert "agent-tui --plain" in program.text


def test_without_a_terminal_to_type_on_the_way_for_scripts_is_named(capsys):
    assert run(["--plain"]) == 2
    assert "Use -p to run one prompt in a script." in capsys.readouterr().err


@pytest.mark.thorough
def test_ctrl_c_works_below_a_shell_that_ignores_it(demo, environ, tmp_path):
    argv = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *demo, "--plain"]
    with PtyProgram(argv, environ={**environ, "TERM": "dumb"}, cwd=tmp_path) as program:
        talk = Talk(program)
        talk.interrupt(PROMPT, "again to quit")
        talk.after(PROMPT, "\x04")
        assert program.wait_until_end() == 0
