import io
import os
import termios
from contextlib import nullcontext

import pytest

from agent_tui.features.plain.keyboard import (
    BLOCK,
    Keyboard,
    TerminalInput,
    TypedMessage,
    keep_typed_lines,
    terminal_lines,
)
from tests.features.plain.talking import TypedLines, Unread


def message(*typed: str, unread: str = "") -> TypedMessage:
    keyboard = Keyboard(TypedLines(typed, io.StringIO()), nullcontext, Unread(unread), [])
    return keyboard.message("> ")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["  one "], "one"),
        (["one \\", "two\\", "three"], "one \ntwo\nthree"),
        ([BLOCK, "a", "", "  b\\", BLOCK], "a\n\n  b\\"),
        ([f"say {BLOCK}"], f"say {BLOCK}"),
        ([""], ""),
    ],
)
def test_what_is_typed_as_one_message(typed, meant):
    assert message(*typed) == TypedMessage(meant)


def test_an_end_of_input_inside_a_message_sends_nothing_of_it():
    with pytest.raises(EOFError):
        message(BLOCK, "a")


def test_lines_that_come_at_once_are_one_message():
    pasted = TypedMessage("see\n!rm a\n/exit", is_pasted=True)
    assert message("see", "", unread="!rm a\n/exit\n") == pasted
    assert message("see", unread="!rm a\n/exit") == pasted, "the input ended"


def test_a_paste_waits_for_enter_and_takes_what_is_typed_behind_it():
    out = io.StringIO()
    typed = TypedLines(("one", "!", "", "next"), out)
    keyboard = Keyboard(typed, nullcontext, Unread("two\nthree", "four\n"), [])
    assert keyboard.next_message("> ") == TypedMessage("one\ntwo\nthree!\nfour", is_pasted=True)
    assert keyboard.next_message("> ") == TypedMessage("next")
    assert "Pasted, with 2 more lines. Enter sends it: three!\n" in out.getvalue()
    assert "Pasted, with 3 more lines. Enter sends it: \n" in out.getvalue()


def test_a_paste_that_answers_a_question_is_taken_at_once():
    keyboard = Keyboard(TypedLines(("y",), io.StringIO()), nullcontext, Unread("two\n"), [])
    assert keyboard.message("> ", confirms=False) == TypedMessage("y\ntwo", is_pasted=True)


def test_what_was_typed_on_a_terminal_is_taken_once():
    terminal, program = os.openpty()
    with os.fdopen(program, encoding="utf-8") as stdin:
        modes = termios.tcgetattr(stdin)
        modes[0] &= ~termios.ICRNL  # as readline leaves what it has not read
        termios.tcsetattr(stdin, termios.TCSANOW, modes)
        os.write(terminal, "one\rtwö\npart".encode())
        unread = TerminalInput(stdin)
        assert unread.take() == "one\ntwö\npart"
        os.write(terminal, b"rest")
        unread.drop_rest()
        os.write(terminal, b"three\n")
        assert stdin.readline() == "three\n"
    os.close(terminal)


def test_lines_typed_during_work_survive_ctrl_c():
    terminal, program = os.openpty()
    with os.fdopen(program, encoding="utf-8") as stdin:
        before = termios.tcgetattr(stdin)
        with keep_typed_lines(stdin):
            os.write(terminal, b"use tabs\nhalf\x03")
            assert TerminalInput(stdin).take() == "use tabs\nhalf"
        assert termios.tcgetattr(stdin) == before
        with keep_typed_lines(io.StringIO()):
            pass
    os.close(terminal)


def test_what_answers_no_question_is_the_next_message_and_its_last_line_can_be_finished():
    out = io.StringIO()
    typed = TypedLines(("y", " and the rest", "next"), out)
    keyboard = Keyboard(typed, nullcontext, Unread(), ["zero\n", "\n"])
    assert keyboard.hold("one\n")
    keyboard.hold("two\n/exit\nhalf")
    assert keyboard.message("y or n: ") == TypedMessage("y")
    assert [keyboard.next_message("> ") for _ in range(5)] == [
        TypedMessage("zero", is_held=True),
        TypedMessage("one", is_held=True),
        TypedMessage("two\n/exit", is_pasted=True, is_held=True),
        TypedMessage("half and the rest"),
        TypedMessage("next"),
    ]
    assert not Keyboard(typed, nullcontext, Unread(), None).hold("lost\n")
    assert out.getvalue() == "y or n: y\n> half and the rest\n> next\n"


def test_without_a_terminal_that_can_draw_lines_are_read_as_they_come():
    out = io.StringIO()
    lines = terminal_lines((), {"TERM": "xterm"}, io.StringIO("one\ntwo"), out)
    assert [lines.read("> ", "to "), lines.read("> ")] == ["to one", "two"]
    with pytest.raises(EOFError):
        lines.read("> ")
    assert out.getvalue() == "> to > > "


def test_messages_of_one_line_can_be_brought_back_but_no_answers():
    typed = TypedLines(("one", "y", "a\\", "b", ""), io.StringIO())
    keyboard = Keyboard(typed, nullcontext, Unread(), [])
    keyboard.next_message("> ")
    keyboard.line("y or n: ")
    keyboard.next_message("> ")
    keyboard.next_message("> ")
    assert typed.remembered == ["one"]


def test_a_prompt_cannot_steer_the_terminal():
    out = io.StringIO()
    Keyboard(TypedLines(("y",), out), nullcontext, Unread(), []).line("go on in /a\x1b[2J\nb: ")
    assert out.getvalue() == "go on in /a␛[2J⏎b: y\n"
