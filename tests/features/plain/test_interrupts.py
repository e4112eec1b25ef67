import signal

import pytest

from agent_tui.features.plain.keyboard import Interrupts


def test_ctrl_c_ends_the_reading_and_otherwise_only_stops_what_runs():
    stopped: list[bool] = []
    interrupts = Interrupts(lambda: stopped.append(True))
    before = signal.getsignal(signal.SIGINT)
    with interrupts.handle_signals():
        signal.raise_signal(signal.SIGINT)
        assert stopped == [True]
        with pytest.raises(KeyboardInterrupt), interrupts.reading():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert stopped == [True, True]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_told_to_end_closes_what_is_open(number):
    with Interrupts(lambda: None).handle_signals(), pytest.raises(SystemExit) as ended:
        signal.raise_signal(number)
    assert ended.value.code == 128 + number


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts(lambda: None).handle_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
