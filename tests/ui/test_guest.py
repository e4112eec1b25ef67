from agent_tui.ui.terminal.state import RESTORE_TITLE, SAVE_TITLE, TerminalState, title_sequence


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
