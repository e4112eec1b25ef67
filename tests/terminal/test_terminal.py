"""The program in a real pseudo-terminal: modes restored, size changes, coming back."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.pty_program import PtyProgram

_MODES = re.compile(r"\x1b\[\?(\d+)([hl])")
_MUST_BE_OFF = {
    "1049": "alternate screen",
    "1000": "mouse",
    "1002": "mouse drag",
    "1003": "mouse movement",
    "1006": "mouse format",
    "1015": "mouse format",
    "2004": "bracketed paste",
    "1004": "focus reports",
}


def modes_left_on(output: str) -> list[str]:
    """Private modes that the program switched on and never off again."""
    last = {}
    for number, state in _MODES.findall(output):
        last[number] = state
    left = [name for number, name in _MUST_BE_OFF.items() if last.get(number) == "h"]
    if output.count("\x1b[>1u") > output.count("\x1b[<u"):
        left.append("kitty keyboard")
    if last.get("25") == "l":
        left.append("hidden cursor")
    return left


def wait_until(is_so: Callable[[], bool]) -> None:
    """Until it is so, 30 seconds at most."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_so()


@pytest.mark.thorough
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_leaves_the_terminal_as_it_was(demo, environ, tmp_path, signum):
    with PtyProgram(demo, environ=environ, cwd=tmp_path) as program:
        program.wait_for("ctx:")
        assert modes_left_on(program.output)
        os.kill(program.process.pid, signum)
        code = program.wait_until_end()
        assert modes_left_on(program.output) == []
        assert code == 128 + signum


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["signal", "keys", "stop"])
def test_the_terminal_s_progress_follows_the_work_and_never_outlives_it(
    demo, environ, tmp_path, way
):
    known = {n: v for n, v in environ.items() if n not in ("TMUX", "STY")}
    known["TERM_PROGRAM"] = "ghostty"
    with PtyProgram(demo, environ=known, cwd=tmp_path) as program:
        program.wait_for("ctx:")
        assert "\x1b]9;4" not in program.output
        program.send("hello\r")
        wait_until(lambda: "\x1b]9;4;3;0\x07" in program.output)  # at work
        wait_until(lambda: "\x1b]9;4;4;100\x07" in program.output)  # a question waits
        if way == "signal":
            os.kill(program.process.pid, signal.SIGTERM)
            program.wait_until_end()
        elif way == "keys":
            program.send("\x03")
            wait_until(lambda: "\x1b]9;4;0;0\x07" in program.output)
            program.send("\x03\x03")
            program.wait_until_end()
        else:
            program.send("\x1a")
            _, status = os.waitpid(program.process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            wait_until(lambda: "\x1b]9;4;0;0\x07" in program.output)
            os.kill(program.process.pid, signal.SIGCONT)
            wait_until(lambda: program.output.rpartition("\x1b]9;4;")[2].startswith("4;100"))
            os.kill(program.process.pid, signal.SIGTERM)
            program.wait_until_end()
        assert program.output.rpartition("\x1b]9;4;")[2].startswith("0;0\x07")


@pytest.mark.thorough
def test_leaving_by_a_key_restores_the_terminal_and_says_how_to_come_back(demo, environ, tmp_path):
    with PtyProgram(demo, environ=environ, cwd=tmp_path) as program:
        program.wait_for("ctx:")
        program.send("hello\r")
        program.wait_for("a plan")
        program.send("\x03")
        program.wait_for("interrupted")
        program.send("\x03\x03")
        assert program.wait_until_end() == 0
        assert modes_left_on(program.output) == []
        left = program.output.rpartition("\x1b[?1049l")[2]
        assert "> hello" in left
        assert left.index("> hello") < left.index("agent-tui -r")


@pytest.mark.thorough
def test_a_stopped_tour_goes_on_where_it_is_resumed(demo, environ, tmp_path):
    with PtyProgram(demo, environ=environ, cwd=tmp_path) as program:
        program.wait_for("ctx:")
        program.send("what a curious prompt\r")
        program.wait_for("a plan")
        os.kill(program.process.pid, signal.SIGTERM)
        program.wait_until_end()
    (session,) = tmp_path.rglob("sessions/**/*.jsonl")
    again = [sys.executable, "-m", "agent_tui", "-r", str(session)]
    with PtyProgram(again, environ=environ, cwd=tmp_path) as program:
        program.wait_for("curious")


@pytest.mark.thorough
def test_the_terminal_is_lent_to_the_scrollback_and_to_the_shell_and_taken_back(
    demo, environ, tmp_path
):
    with PtyProgram(demo, environ=environ, cwd=tmp_path) as program:
        program.wait_for("ctx:")
        program.send("hello\r")
        program.wait_for("a plan")
        program.send("\x1b")
        program.wait_for("interrupted")
        program.send("/scrollback\r")
        program.wait_for("Press Enter to return")
        assert modes_left_on(program.output) == []
        since = len(program.text)
        program.send("\r")
        program.wait_for("ctx:", since=since)
        program.send("\x1a")
        _, status = os.waitpid(program.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        wait_until(lambda: modes_left_on(program.output) == [])
        titles = re.findall(r"\x1b\[2([23]);2t", program.output)
        assert titles == ["2", "3"] * 2  # remembered and given back, both times
        since = len(program.text)
        os.kill(program.process.pid, signal.SIGCONT)
        program.wait_for("ctx:", since=since)
        assert "mouse" in modes_left_on(program.output)
        program.send("жбц")
        program.wait_for("ц", since=since)


def test_a_small_terminal_and_a_storm_of_sizes_leave_a_working_screen(demo, environ, tmp_path):
    with PtyProgram(demo, environ=environ, cwd=tmp_path, columns=40, rows=10) as program:
        program.wait_for("ctx:")
        for step in range(40):
            program.resize(20 + step * 4, 5 + step)
        since = len(program.text)
        program.send("жбц")
        program.wait_for("ц", since=since)


def test_a_pasted_page_does_not_send_itself(demo, environ, tmp_path):
    page = "\r".join(f"line {number}" for number in range(500))
    with PtyProgram(demo, environ=environ, cwd=tmp_path) as program:
        program.wait_for("ctx:")
        program.send(f"\x1b[200~{page}\x1b[201~")
        program.wait_for("paste #1")
        assert not list(tmp_path.rglob("*.jsonl"))


def test_a_page_pasted_without_marks_is_one_paste_and_takes_about_as_long_as_a_marked_one(
    demo, environ, tmp_path
):
    page = "\r".join(f"line {number} of a log, with a tab\tand 宽 👩‍💻" for number in range(1_000))
    with PtyProgram(demo, environ=environ, cwd=tmp_path) as program:
        program.wait_for("ctx:")
        took_s: dict[str, float] = {}
        marked, unmarked = f"\x1b[200~{page}\x1b[201~", f"{page}\r"
        for number, sent in enumerate((marked, unmarked) * 2, 1):  # it is still warming up at first
            begun_s = time.perf_counter()
            program.send(sent)
            program.wait_for(f"paste #{number}")
            took_s[sent] = time.perf_counter() - begun_s
        assert took_s[unmarked] < 20 * took_s[marked], (
            "key by key, it takes a hundred times as long"
        )
        assert not list(tmp_path.rglob("*.jsonl"))


def test_the_screen_needs_a_terminal(environ, tmp_path):
    import subprocess

    argv = [sys.executable, "-m", "agent_tui"]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environ, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "-p" in done.stderr
