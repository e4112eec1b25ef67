import pytest

from agent_tui.ui.terminal.state import (
    RESTORE_TITLE,
    SAVE_TITLE,
    TerminalState,
    can_show_progress,
    progress_sequence,
    title_sequence,
)
from tests.support.rows import each_row


def guest(*, has_mouse: bool) -> tuple[TerminalState, list[str]]:
    written: list[str] = []
    return TerminalState(written.append, has_mouse=has_mouse), written


def test_a_title_is_written_when_it_changes_and_given_back():
    terminal, written = guest(has_mouse=True)
    terminal.enter()
    terminal.set_title("~/a · idle")
    terminal.set_title("~/a · idle")
    terminal.leave()
    given_back = title_sequence("") + RESTORE_TITLE
    assert written == [SAVE_TITLE, title_sequence("~/a · idle"), given_back]
    written.clear()
    terminal.enter()
    assert written == [SAVE_TITLE, title_sequence("~/a · idle")]


def test_a_mouse_that_was_switched_off_stays_off_when_the_terminal_comes_back():
    terminal, written = guest(has_mouse=True)
    terminal.set_mouse(False)
    assert not terminal.is_mouse_on
    off = "\x1b[?1003l\x1b[?1000l"
    assert written == [off]
    terminal.leave()
    written.clear()
    terminal.enter()
    assert written == [SAVE_TITLE, off]
    terminal.set_mouse(True)
    assert written[-1] == "\x1b[?1000h\x1b[?1003h"


def test_a_mouse_the_driver_does_not_know_of_is_given_back_by_us():
    terminal, written = guest(has_mouse=False)
    assert not terminal.is_mouse_on
    terminal.set_mouse(True)
    assert written == ["\x1b[?1006h\x1b[?1000h\x1b[?1003h"]
    terminal.leave()
    assert written[-1] == "\x1b[?1003l\x1b[?1000l\x1b[?1006l"


def in_use(setting: str = "auto") -> tuple[TerminalState, list[str]]:
    terminal, written = guest(has_mouse=True)
    terminal.show_state(in_title=setting != "off", as_progress=setting == "auto")
    return terminal, written


def test_progress_is_shown_when_it_changes_and_again_before_the_terminal_forgets_it():
    terminal, written = in_use()
    for progress in ("working", "working", "waiting", "error", "none"):
        terminal.set_progress(progress)
    assert written == [
        "\x1b]9;4;3;0\x07",
        "\x1b]9;4;4;100\x07",
        "\x1b]9;4;2;100\x07",
        "\x1b]9;4;0;0\x07",
    ]
    written.clear()
    terminal.repeat_progress()
    assert written == []
    terminal.set_progress("working")
    terminal.repeat_progress()
    assert written == [progress_sequence("working")] * 2


def test_progress_is_taken_back_while_another_program_has_the_terminal():
    terminal, written = in_use()
    terminal.set_progress("working")
    terminal.leave()
    assert written[-1] == progress_sequence("none")
    terminal.enter()
    assert written[-1] == progress_sequence("working")


@pytest.mark.parametrize("setting", ["title", "off"])
def test_without_progress_none_is_written(setting: str):
    terminal, written = in_use(setting)
    terminal.enter()
    terminal.set_title("~/a · working")
    terminal.set_progress("working")
    terminal.repeat_progress()
    terminal.leave()
    assert "]9;4" not in "".join(written)
    assert ("~/a" in "".join(written)) == (setting == "title")


def test_a_setting_that_changes_takes_effect_at_once():
    terminal, written = in_use()
    terminal.set_title("~/a · working")
    terminal.set_progress("working")
    written.clear()
    terminal.show_state(in_title=False, as_progress=False)
    assert written == [title_sequence(""), progress_sequence("none")]
    written.clear()
    terminal.show_state(in_title=True, as_progress=True)
    assert written == [title_sequence("~/a · working"), progress_sequence("working")]


@each_row(
    ("environ", "can"),
    [
        ({"TERM_PROGRAM": "ghostty"}, True),
        ({"TERM": "xterm-ghostty"}, True),
        ({"WT_SESSION": "1"}, True),
        ({"ConEmuANSI": "ON"}, True),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.6.6"}, True),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.5.14"}, False),
        ({"TERM_PROGRAM": "WezTerm", "TERM_PROGRAM_VERSION": "20240203-110809-5046fc22"}, False),
        ({"TERM_PROGRAM": "WezTerm", "TERM_PROGRAM_VERSION": "20250301-1-a"}, True),
        ({"TERM_PROGRAM": "WezTerm"}, False),
        ({"TERM_PROGRAM": "ghostty", "TMUX": "/tmp/tmux-0/default,1,0"}, False),
        ({"TERM_PROGRAM": "ghostty", "STY": "1.pts-0"}, False),
        ({"TERM": "xterm-256color"}, False),
        ({}, False),
    ],
)
def test_progress_goes_only_to_terminals_that_show_it_as_such(environ: dict[str, str], can: bool):
    assert can_show_progress(environ) == can
