import dataclasses

import pytest

from agent_tui.cli.doctor import machine
from agent_tui.cli.doctor.check import TerminalFacts

SCREEN = TerminalFacts(True, True, 100, 30)


def test_a_usual_terminal_is_fine(environment, find, monkeypatch):
    monkeypatch.setenv("COLORTERM", "truecolor")
    here = dataclasses.replace(environment(), terminal=SCREEN)
    found = find([*machine.check_terminal(here), *machine.check_looks(here)])
    assert {name: check.state for name, check in found.items()} == {
        "TERM": "ok",
        "size": "ok",
        "colours": "ok",
        "characters": "ok",
        "mouse": "ok",
    }
    assert found["colours"].found == "16 million"


@pytest.mark.parametrize(("columns", "rows"), [(79, 24), (80, 23), (1, 1)])
def test_a_small_window_is_a_warning(environment, find, columns, rows):
    here = dataclasses.replace(environment(), terminal=TerminalFacts(True, True, columns, rows))
    check = find(machine.check_terminal(here))["size"]
    assert (check.state, check.found) == ("warning", f"{columns} columns, {rows} rows")


def test_a_pipe_is_no_fault(environment, find, monkeypatch):
    monkeypatch.delenv("TERM")
    here = dataclasses.replace(environment(), terminal=TerminalFacts(True, False))
    found = find(machine.check_terminal(here))
    assert "standard output: not a terminal" in found["streams"].found
    assert {check.state for check in found.values()} == {"info"}


@pytest.mark.parametrize("term", ["", "dumb"])
def test_a_terminal_without_abilities_is_bad(environment, find, monkeypatch, term):
    monkeypatch.setenv("TERM", term)
    here = dataclasses.replace(environment(), terminal=SCREEN)
    check = find(machine.check_terminal(here))["TERM"]
    assert check.state == "bad"
    assert "agent-tui --plain" in check.advice


@pytest.mark.parametrize(
    ("variables", "is_utf8"),
    [
        ({"LANG": "de_DE.UTF-8"}, True),
        ({"LANG": "C", "LC_ALL": "C.utf8"}, True),
        ({"LC_CTYPE": "UTF-8"}, True),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "de_DE@euro"}, False),
        ({}, False),
    ],
)
def test_the_strongest_locale_variable_decides_about_utf8(variables, is_utf8):
    assert machine.speaks_utf8(variables) == is_utf8


def test_another_locale_is_a_warning(environment, find, monkeypatch):
    monkeypatch.setenv("LC_ALL", "POSIX")
    check = find(machine.check_looks(environment()))["characters"]
    assert check.state == "warning"
    assert "POSIX" in check.found
    assert "UTF-8" in check.advice


def test_no_colour_and_textuals_variables_are_said(environment, find, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TEXTUAL_THEME", "secret")
    found = find(machine.check_looks(environment()))
    assert found["colours"].found == "none: NO_COLOR is set"
    assert found["Textual"].found == "TEXTUAL_THEME set"


def test_a_mouse_that_is_switched_off_is_said(environment, find, config):
    config.write_text("mouse = false\n")
    assert find(machine.check_looks(environment()))["mouse"].state == "info"


@pytest.mark.parametrize(
    ("variables", "said", "advice"),
    [
        ({"DISPLAY": ":0"}, "OSC 52", "xclip"),
        ({"WAYLAND_DISPLAY": "w"}, "OSC 52", "wl-clipboard"),
        ({"SSH_CONNECTION": "1 2 3 4"}, "OSC 52", ""),
    ],
)
def test_where_copies_go_is_told(environment, find, programs, monkeypatch, variables, said, advice):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = find(machine.check_clipboard(environment()))
    assert said in found["clipboard"].found
    assert advice in found["clipboard"].advice
    assert ("ssh" in found) == ("SSH_CONNECTION" in variables)


def test_a_tool_for_the_clipboard_is_used(environment, find, programs, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    programs("xsel", "")
    check = find(machine.check_clipboard(environment()))["clipboard"]
    assert (check.state, "xsel" in check.found) == ("ok", True)


def test_tmux_is_asked_for_what_matters_here(environment, find, programs, monkeypatch):
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    programs("tmux", "echo '3.4|off|0|500'")
    found = find(machine.check_multiplexer(environment()))
    assert found["tmux"].found == ("3.4, set-clipboard off, allow-passthrough off, escape-time 500")
    assert found["tmux clipboard"].advice.endswith("tmux set -s set-clipboard external")
    assert "Esc reacts late" in found["tmux keys"].found


def test_a_well_set_tmux_has_one_line(environment, find, programs, monkeypatch):
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    programs("tmux", "echo '3.5a|external||10'")
    (check,) = machine.check_multiplexer(environment())
    assert (check.state, check.found) == ("ok", "3.5a, set-clipboard external, escape-time 10")


@pytest.mark.parametrize("script", ["exit 1", "echo nonsense", ":"])
def test_a_tmux_that_is_gone_is_said(environment, find, programs, monkeypatch, script):
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    programs("tmux", script)
    assert find(machine.check_multiplexer(environment()))["tmux"].state == "warning"


def test_gnu_screen_is_said_and_nothing_without_either(environment, find, monkeypatch):
    assert list(machine.check_multiplexer(environment())) == []
    monkeypatch.setenv("STY", "1.pts-0")
    assert find(machine.check_multiplexer(environment()))["screen"].state == "info"
