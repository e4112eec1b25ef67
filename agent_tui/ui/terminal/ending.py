"""Ending the program in order: on signals, on a terminal that is gone, on a fault of ours."""

import asyncio
import os
import signal
import termios
import traceback

from rich.text import Text
from textual.app import App

from agent_tui.safe_text import safe_text
from agent_tui.ui.terminal.run import UiOutcome

_END_WITHIN_S = 10
"""How long leaving may take once the terminal is gone."""


def crash_report(error: BaseException | None) -> Text:
    """Where the program broke, without keys and conversation: no values of variables."""
    from agent_tui.providers.keys import secret_values
    from agent_tui.secret_text import mask_secrets

    trace = "".join(traceback.format_exception(error)) if error else "Location unknown."
    return Text(mask_secrets(safe_text(trace), secret_values(os.environ)))


def leave_on_signals(app: App[UiOutcome]) -> None:
    """Leave in order on SIGTERM and SIGHUP.

    Textual alone would leave mouse reporting, the alternate screen and the keyboard protocol
    switched on, and would wait for ever to write to a terminal that was closed.
    """
    loop = asyncio.get_running_loop()

    def leave(number: int, _frame: object) -> None:
        if _terminal_is_gone():
            _write_nowhere()
        loop.call_soon_threadsafe(app.exit, UiOutcome(128 + number), 128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):  # at once: the loop may come too late
        signal.signal(number, leave)


def _terminal_is_gone() -> bool:
    try:
        termios.tcgetattr(2)
    except termios.error:
        return True
    return False


def _write_nowhere() -> None:
    """Let what is still written vanish; end the hard way should it not get that far."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nowhere, output)
    os.close(nowhere)
    signal.alarm(_END_WITHIN_S)
