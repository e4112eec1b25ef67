from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.message import Message

from agent_tui.ui.terminal import input as terminal_input
from agent_tui.ui.terminal.input import PasteSafeParser

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
    assert heard == ["a", f"<{NASTY}>", "enter", "<>", "b", "up"]


def test_a_paste_whose_end_never_comes_is_over_after_a_while(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(terminal_input.time, "monotonic", lambda: now[0])
    parser = PasteSafeParser()
    assert told(parser.feed(f"{BEGIN}rm -rf /\r")) == []
    assert told(parser.tick()) == []
    now[0] += terminal_input.PATIENCE_S + 1
    assert told(parser.tick()) == ["<rm -rf /\r>"]
    assert told(parser.feed("a\r")) == ["a", "enter"]
