from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from agent_tui.events import (
    ApprovalRequest,
    ApprovalRequested,
    FormOpened,
    TurnFinished,
    TurnStarted,
)
from agent_tui.features.notify.notifier import (
    AWAY_AFTER_S,
    BELL_ONLY,
    LONG_TURN_S,
    MAX_CHARS,
    Notifier,
    NotifyMethod,
    notification_sequence,
    notify_method,
)
from tests.support.rows import each_row
from tests.support.terminal_attacks import hostile_text, what_is_left
from tests.ui.scenes import StillClock

ASKED = ApprovalRequested(ApprovalRequest("r", "c", "bash", "git push", "", "command", "", ""))
FORM = FormOpened("c", "Which database?")
OSC_9, OSC_99 = NotifyMethod("osc 9"), NotifyMethod("osc 99")


def says(answer: str) -> Callable[[], str]:
    return lambda: answer


def never_asked() -> str:
    raise AssertionError("this is not tmux")


@each_row(
    ("environ", "way"),
    [
        ({"TERM_PROGRAM": "iTerm.app", "TERM": "xterm-256color"}, OSC_9),
        ({"TERM_PROGRAM": "WezTerm"}, OSC_9),
        ({"TERM": "xterm-ghostty"}, OSC_9),
        ({"TERM": "xterm-kitty"}, OSC_99),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, OSC_99),
        ({"TERM": "foot"}, NotifyMethod("osc 777")),
        ({"TERM": "xterm-256color"}, BELL_ONLY),
        ({"TERM_PROGRAM": "Apple_Terminal"}, BELL_ONLY),
        ({"TERM": "screen", "STY": "1.x", "KITTY_WINDOW_ID": "1"}, BELL_ONLY),
        ({}, BELL_ONLY),
    ],
)
def test_only_a_terminal_known_to_notify_is_asked_to(environ: Mapping[str, str], way: NotifyMethod):
    assert notify_method(environ, never_asked) == way


@pytest.mark.parametrize(
    ("facts", "way"),
    [
        ("on iTerm2 3.5.0 xterm-256color", NotifyMethod("osc 9", through_tmux=True)),
        ("1  xterm-kitty", NotifyMethod("osc 99", through_tmux=True)),
        ("off iTerm2 3.5.0 xterm-256color", BELL_ONLY),
        ("on  xterm-256color", BELL_ONLY),
        ("", BELL_ONLY),
    ],
)
def test_inside_tmux_it_counts_what_tmux_lets_through_and_to_whom(facts: str, way: NotifyMethod):
    leaked = {"TMUX": "/tmp/t,1,0", "TERM_PROGRAM": "tmux", "KITTY_WINDOW_ID": "1"}
    assert notify_method(leaked, says(facts)) == way


def test_each_protocol_has_its_form():
    def made(way: NotifyMethod) -> str:
        return notification_sequence(way, "a;b", "c;d")

    assert made(BELL_ONLY) == "\x07"
    assert made(OSC_9) == "\x1b]9;a;b: c;d\x1b\\"
    assert made(NotifyMethod("osc 777")) == "\x1b]777;notify;a,b;c,d\x1b\\"
    assert made(OSC_99) == (
        "\x1b]99;i=agent-tui:d=0:o=unfocused;a;b\x1b\\"
        "\x1b]99;i=agent-tui:p=body:o=unfocused;c;d\x1b\\"
    )
    wrapped = made(NotifyMethod("osc 9", through_tmux=True))
    assert wrapped == "\x1bPtmux;\x1b\x1b]9;a;b: c;d\x1b\x1b\\\x1b\\"


@hypothesis_settings(max_examples=40, deadline=None)
@given(hostile_text)
def test_no_text_ends_a_notification_early(text: str):
    sent = notification_sequence(OSC_9, "t", text)
    assert what_is_left(sent.removeprefix("\x1b]9;").removesuffix("\x1b\\")) == set()
    assert len(sent) <= MAX_CHARS + len("\x1b]9;t: \x1b\\")


def test_who_looks_is_not_called_and_who_looks_away_is():
    clock = StillClock()
    notifier = Notifier("auto", clock)
    assert notifier.text_for(ASKED) == ""
    notifier.focus_changed(False)
    assert notifier.text_for(ASKED) == "Waiting for your answer: git push"
    assert notifier.text_for(FORM) == "Waiting for your answer: Which database?"
    notifier.focus_changed(True)
    clock.now += AWAY_AFTER_S  # a terminal that tells of its focus is believed
    assert notifier.text_for(ASKED) == ""


def test_where_the_focus_is_not_told_a_person_who_does_not_type_may_be_away():
    clock = StillClock()
    notifier = Notifier("auto", clock)
    clock.now += AWAY_AFTER_S
    assert notifier.text_for(ASKED)
    notifier.person_acted()
    assert notifier.text_for(ASKED) == ""


def test_the_end_of_a_turn_calls_if_it_took_long_and_an_error_always():
    clock = StillClock()
    notifier = Notifier("bell", clock)
    notifier.focus_changed(False)

    def told(took_s: float, end: TurnFinished) -> str:
        notifier.text_for(TurnStarted())
        clock.now += took_s
        return notifier.text_for(end)

    assert told(LONG_TURN_S, TurnFinished("done")) == "Finished after 10s"
    assert told(LONG_TURN_S - 1, TurnFinished("done")) == ""
    assert told(LONG_TURN_S, TurnFinished("aborted")) == ""
    assert told(0, TurnFinished("error", "no network")) == "Stopped by an error: no network"
    notifier.text_for(TurnStarted())  # the first of a loop's
    assert told(LONG_TURN_S - 1, TurnFinished("length")) == ""
    notifier.text_for(TurnStarted())
    clock.now += LONG_TURN_S
    assert told(0, TurnFinished("done")) == "Finished after 10s"


def test_nobody_is_called_who_does_not_want_to_be():
    notifier = Notifier("off", StillClock())
    notifier.focus_changed(False)
    assert notifier.text_for(ASKED) == ""


async def test_a_person_who_wants_the_bell_alone_gets_no_notification():
    assert await Notifier("bell", StillClock()).method({"TERM": "xterm-kitty"}) == BELL_ONLY
    assert await Notifier("auto", StillClock()).method({"TERM": "xterm-kitty"}) == OSC_99
