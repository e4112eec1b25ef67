import os
import threading
import time
import tty
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.message import Message

from agent_tui.ui.terminal import input as terminal_input
from agent_tui.ui.terminal.input import (
    BackgroundTold,
    InputClock,
    PasteSafeParser,
    TerminalDriver,
    is_light,
)
from agent_tui.ui.theme.themes import DARK, LIGHT
from tests.support.rows import each_row
from tests.ui.app_support import running_app

BEGIN, END = "\x1b[200~", "\x1b[201~"
NASTY = "one\r\x1b[31mred\x1b[0m\x07\r\x1b\x1b[200~\x1b[A" + "x" * 40 + "\x1b[20"


def told(messages: Iterable[Message]) -> list[str]:
    """Keys by name, pastes as ``<text>``."""
    return [
        f"<{message.text}>" if isinstance(message, events.Paste) else message.key
        for message in messages
        if isinstance(message, events.Paste | events.Key)
    ]


@given(st.lists(st.integers(1, 200), max_size=6))
def test_a_paste_is_one_paste_wherever_it_is_cut_and_whatever_it_holds(cuts: list[int]):
    parser = PasteSafeParser()
    data = f"a{BEGIN}{NASTY}{END}\r{BEGIN}{END}b\x1b[A"
    heard: list[str] = []
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), None], strict=True):
        if piece := data[begin:end]:
            heard += told(parser.feed(piece))
    heard += told(parser.flush())
    assert heard == ["a", f"<{NASTY}>", "enter", "<>", "b", "up"]


def test_a_paste_whose_end_never_comes_is_over_after_a_while(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(terminal_input.time, "monotonic", lambda: now[0])
    parser = PasteSafeParser()
    assert told(parser.feed(f"{BEGIN}rm -rf /\r")) == []
    assert told(parser.tick()) == []
    now[0] += terminal_input.PATIENCE_S + 1
    assert told(parser.tick()) == ["<rm -rf /\r>"]
    assert told([*parser.feed("a\r"), *parser.flush()]) == ["a", "enter"]


LIGHT_REPLY = "\x1b]11;rgb:ffff/fefe/eeee\x1b\\"


@each_row(
    ("colour", "light"),
    [
        ("rgb:ffff/ffff/ffff", True),
        ("rgb:0/0/0", False),
        ("rgba:1e/1e/2e/ff", False),
        ("rgb:fd/f6/e3", True),
        ("#ffffff", None),
        ("", None),
    ],
)
def test_a_colour_is_light_or_dark(colour: str, light: bool | None):
    assert is_light(colour) is light


@pytest.mark.parametrize("end", ["\x07", "\x1b\\"])
@given(data=st.data())
def test_what_the_terminal_tells_of_its_background_is_no_key_wherever_it_is_cut(end: str, data):
    reply = f"\x1b]11;rgb:0000/0000/0000{end}"
    at = data.draw(st.integers(2, len(reply) - 1))
    parser = PasteSafeParser()
    heard = [*parser.feed(f"a{reply[:at]}"), *parser.feed(f"{reply[at:]}b"), *parser.flush()]
    assert told(heard) == ["a", "b"]
    assert [m.is_light for m in heard if isinstance(m, BackgroundTold)] == [False]


def test_an_answer_within_a_paste_is_text():
    heard = list(PasteSafeParser().feed(f"\x1b[200~x{LIGHT_REPLY}\x1b[201~"))
    assert not [m for m in heard if isinstance(m, BackgroundTold)]


@pytest.mark.parametrize(
    ("asks", "chosen", "theme"),
    [(True, "", LIGHT), (False, "", DARK), (True, "nord", "nord")],
)
async def test_the_theme_suits_the_terminal_unless_one_was_chosen(
    tmp_path: Path, asks: bool, chosen: str, theme: str
):
    async with running_app(tmp_path) as ui:
        ui.app._theme_to_mend = ui.app.theme if asks else ""
        if chosen:
            ui.app.theme = chosen
        ui.app.post_message(BackgroundTold(is_light=True))
        await ui.settle()
        assert ui.app.theme == theme


LONG_LINE = "wide 宽 e\u0301 👩‍💻 " * 40


@each_row(
    ("bursts", "heard"),
    [
        (["ab", "\r", "c\r"], ["a", "b", "enter", "c", "enter"]),
        (["ab\r"], ["a", "b", "enter"]),
        (["\rab"], ["enter", "a", "b"]),
        (["/he\t", "\r"], ["slash", "h", "e", "tab", "enter"]),
        (["ab\rc\r", "\r"], ["<ab\rc\r>", "enter"]),
        (["ab\nc"], ["<ab\nc>"]),
        (["\rab\rc"], ["enter", "<ab\rc>"]),
        (["a\tb\r"], ["<a\tb>", "enter"]),
        (["a\r\x1b[Ab\r"], ["<a\r>", "up", "<b\r>"]),
        (["a\r\x1b[31mb\x1b[0m\r"], ["<a\rb\r>"]),
        ([f"{LONG_LINE}\r"], [f"<{LONG_LINE}>", "enter"]),
        ([f"a\r{BEGIN}b{END}\r"], ["a", "enter", "<b>", "enter"]),
        (["a\x1b[200"], ["a"]),
    ],
)
def test_lines_that_come_at_once_are_a_paste_though_nothing_marks_it(
    bursts: list[str], heard: list[str]
):
    parser = PasteSafeParser()
    messages = [m for burst in bursts for m in (*parser.feed(burst, 0.3), *parser.flush())]
    assert told(messages) == heard


@given(st.text(st.sampled_from("ab \t\r宽\u0301👩"), min_size=1), st.data())
def test_a_paste_that_nothing_marks_has_all_its_text_wherever_it_is_cut(text: str, data):
    at = data.draw(st.integers(0, len(text)))
    parser = PasteSafeParser()
    pasted = f"one\rtwo{text}"
    first = list(parser.feed(pasted[: 5 + at]))
    assert first == [], "it waits for the end"
    assert told([*parser.feed(pasted[5 + at :]), *parser.flush()]) == [f"<{pasted}>"]


@each_row(
    ("gap_s", "text", "heard"),
    [
        (0.01, "c\r", ["<c\r>"]),
        (0.1, "c\r", ["<c\r>"]),
        (0.1, "\r", ["enter"]),
        (0.1, "c", ["c"]),
        (0.3, "c\r", ["c", "enter"]),
    ],
)
def test_a_line_soon_after_a_paste_is_the_rest_of_it(gap_s: float, text: str, heard: list[str]):
    parser = PasteSafeParser()
    assert told([*parser.feed("a\rb"), *parser.flush()]) == ["<a\rb>"]
    assert told([*parser.feed(text, gap_s), *parser.flush()]) == heard


def test_lines_are_a_paste_though_each_letter_is_read_alone():
    parser = PasteSafeParser()
    heard = told(m for letter in "ab\rcd\r" for m in parser.feed(letter))
    assert heard == ["a", "b"]
    assert told(parser.flush()) == ["<\rcd\r>"]


def test_keys_of_a_paste_are_one_burst_however_long_they_take_to_handle():
    now = [10.0]
    clock = InputClock(lambda: now[0])
    first = clock.read(has_waited=False)
    assert first == 10.0
    now[0] += 3.0
    clock.note_handled()
    assert clock.read(has_waited=True) == first, "they had waited"
    now[0] += 3.0
    clock.note_handled()
    now[0] += 0.01
    assert clock.read(has_waited=False) - first == pytest.approx(0.01), "they came soon after"
    clock.note_handled()
    now[0] += 0.5
    assert clock.read(has_waited=False) == now[0], "and these after a pause"


def test_keys_of_bytes_that_waited_have_one_time():
    far, near = os.openpty()
    tty.setraw(near)
    told: list[tuple[str, float]] = []

    class Slow(TerminalDriver):
        def __init__(self) -> None:
            self.fileno, self._debug = near, False
            self.exit_event = threading.Event()

        def process_message(self, message: Message) -> None:
            if isinstance(message, events.Key):
                told.append((message.key, message.time))
                if message.key == "a":  # handling it takes longer than keys of a paste are apart
                    os.write(far, b"b")
                    time.sleep(0.1)
                else:
                    self.exit_event.set()

    os.write(far, b"a")
    Slow().run_input_thread()
    os.close(far)
    os.close(near)
    (first, at), (second, then) = told
    assert (first, second) == ("a", "b")
    assert then == at
