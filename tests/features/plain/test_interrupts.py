import signal
import threading

import pytest

from agent_tui.features.plain.keyboard import Interrupts, Woken


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
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


def test_a_thread_wakes_the_reading_of_a_message_that_has_not_begun():
    typed: list[str] = []
    interrupts = Interrupts(lambda: None, lambda: bool(typed))
    with interrupts.handle_signals():
        with interrupts.reading():  # a question is not disturbed
            wake_from_thread(interrupts)
        with pytest.raises(Woken), interrupts.reading(True):
            pytest.fail("the call before is forgotten")
        with pytest.raises(Woken), interrupts.reading(True):
            wake_from_thread(interrupts)
        typed.append("a draft")
        with interrupts.reading(True):
            wake_from_thread(interrupts)


def wake_from_thread(interrupts: Interrupts) -> None:
    thread = threading.Thread(target=interrupts.wake)
    thread.start()
    thread.join()
