"""The terminal's title and mouse, and an orderly end, none of which Textual sees to.

Everything is given back when the program ends, and while another program has the terminal.
"""

import asyncio
import os
import signal
import termios
import traceback
from collections.abc import Callable

from rich.text import Text
from textual.app import App

from agent_tui.safe_text import safe_text
from agent_tui.ui.terminal.run import UiOutcome

MAX_TITLE_CHARS = 80

SAVE_TITLE = "\x1b[22;2t"
RESTORE_TITLE = "\x1b[23;2t"
"""xterm's title stack; terminals without one ignore both."""

_REPORT_MOUSE = "\x1b[?1000h\x1b[?1003h"
_LEAVE_MOUSE = "\x1b[?1003l\x1b[?1000l"
_CELL_POSITIONS = "\x1b[?1006h"
_NO_POSITIONS = "\x1b[?1006l"
_END_WITHIN_S = 10
"""How long leaving may take once the terminal is gone."""


def crash_report(error: BaseException | None) -> Text:
    """The traceback of a fault, without keys, conversation and values of variables."""
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
    """Discard further output; exit forcibly if the program does not end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nowhere, output)
    os.close(nowhere)
    signal.alarm(_END_WITHIN_S)


def title_sequence(title: str) -> str:
    """The bytes that set the terminal's title (OSC 2), without what could end them early."""
    return f"\x1b]2;{safe_text(title, keep_newlines=False)[:MAX_TITLE_CHARS]}\x07"


class TerminalState:
    """Keeps the terminal's title and mouse as they are wanted now.

    Args:
        write: Sends bytes to the terminal; does nothing where there is none.
        has_mouse: Whether Textual's driver was started with the mouse. It then switches it off
            and on again itself around everything but a change at run time.
    """

    def __init__(self, write: Callable[[str], None], *, has_mouse: bool) -> None:
        self.write = write
        self._driver_has_mouse = has_mouse
        self._is_mouse_on = has_mouse
        self._title = ""

    @property
    def is_mouse_on(self) -> bool:
        """Whether clicks and drags come to the program."""
        return self._is_mouse_on

    def enter(self) -> None:
        """Save the terminal's own title, and show ours once there is one."""
        self.write(SAVE_TITLE)
        if self._title:
            self.write(title_sequence(self._title))
        if self._is_mouse_on != self._driver_has_mouse:
            self._send_mouse()

    def leave(self) -> None:
        """Give back what Textual's driver does not: to leave, or for a while.

        An empty title is each terminal's own, for those that did not remember the one before.
        """
        self.write(title_sequence("") + RESTORE_TITLE)
        if self._is_mouse_on and not self._driver_has_mouse:
            self.write(_LEAVE_MOUSE + _NO_POSITIONS)

    def set_title(self, title: str) -> None:
        """Make `title` the terminal's title."""
        if title != self._title:
            self._title = title
            self.write(title_sequence(title))

    def set_mouse(self, on: bool) -> None:
        """Take the mouse or leave it to the terminal."""
        if on != self._is_mouse_on:
            self._is_mouse_on = on
            self._send_mouse()

    def _send_mouse(self) -> None:
        """Switch mouse reports; the driver keeps the format of positions, which may be pixels."""
        if not self._is_mouse_on:
            self.write(_LEAVE_MOUSE)
        elif self._driver_has_mouse:
            self.write(_REPORT_MOUSE)
        else:
            self.write(_CELL_POSITIONS + _REPORT_MOUSE)
