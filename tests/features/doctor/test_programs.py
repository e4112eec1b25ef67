import sys

from agent_tui.commands.core.checks import ask_program
from tests.features.doctor.conftest import CANARY


def test_what_a_program_prints_on_either_stream_is_its_answer(environment):
    answer = ask_program(environment(), "sh", "-c", "echo one; echo two >&2; exit 3")
    assert answer is not None
    assert (answer.returncode, answer.stdout) == (3, "one\ntwo\n")


def test_a_program_that_hangs_is_ended(environment):
    assert ask_program(environment(), "sleep", "60", timeout_s=0.01) is None


def test_what_cannot_be_started_has_no_answer(environment):
    assert ask_program(environment(), "/nowhere/at/all") is None
    assert ask_program(environment(), f"{sys.executable}\0") is None


def test_programs_that_are_asked_get_no_keys(environment, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    answer = ask_program(
        environment(), "sh", "-c", 'echo "[$OPENAI_API_KEY$AWS_SECRET_ACCESS_KEY]"'
    )
    assert answer is not None
    assert answer.stdout == "[]\n"
