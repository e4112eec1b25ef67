import fcntl
import sys

from agent_tui.cli.doctor.check import Answer, ask_program, find_program


def test_what_a_program_prints_on_either_stream_is_its_answer():
    answer = ask_program(("/bin/sh", "-c", "echo; echo ' one '; echo two >&2; exit 3"), {})
    assert answer is not None
    assert (answer.exit_code, answer.first_line, answer.last_line) == (3, "one", "two")


def test_a_program_that_hangs_is_ended_with_all_it_started(tmp_path):
    lock = tmp_path / "held"
    holder = f"import fcntl, os, time; file = open({str(lock)!r}, 'w'); fcntl.flock(file, 2)"
    forking = f"{holder}; os.fork(); time.sleep(60)"
    assert ask_program((sys.executable, "-c", forking), {}, timeout_s=1) is None
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # waits for ever if a process is left that holds it


def test_what_cannot_be_started_has_no_answer():
    assert ask_program(("/nowhere/at/all",), {}) is None
    assert ask_program((f"{sys.executable}\0",), {}) is None


def test_programs_are_looked_for_on_the_path_that_is_given(tmp_path):
    tool = tmp_path / "tool"
    tool.write_text("")
    tool.chmod(0o755)
    assert find_program("tool", {"PATH": str(tmp_path)}) == str(tool)
    assert find_program("tool", {"PATH": "/nowhere"}) is None
    assert find_program("sh", {}) is not None


def test_an_empty_answer_has_empty_lines():
    assert (Answer(0, "").first_line, Answer(0, "\n \n").last_line) == ("", "")
