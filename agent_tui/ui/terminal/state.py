"""The terminal's title, progress and mouse, and an orderly end, none of which Textual sees to.

Everything is given back when the program ends, and while another program has the terminal.
"""

import asyncio
import os
import re
import signal
import termios
import traceback
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from rich.text import Text
from textual.app import App

from agent_tui.safe_text import safe_text
from agent_tui.ui.terminal.outcome import UiOutcome

MAX_TITLE_CHARS = 80

SAVE_TITLE = "\x1b[22;2t"
RESTORE_TITLE = "\x1b[23;2t"
"""xterm's title stack; terminals without one ignore both."""

Progress: TypeAlias = Literal["none", "working", "waiting", "error"]
"""What the program does, as a terminal can show it beside the title."""

_PROGRESS: Mapping[Progress, str] = MappingProxyType(
    {"none": "0;0", "working": "3;0", "waiting": "4;100", "error": "2;100"}
)
"""States 3 (no percentage known), 4 (paused) and 2 (error): ghostty.org/docs/vt/osc/conemu."""

_TAKES_PROGRESS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "ghostty": (),
        "mintty": (),
        "vscode": (1, 97),
        "wezterm": (20250209,),
        "iterm": (3, 6, 6),
    }
)
"""Terminals, and the first version that shows progress. Without a version, all do or ignore it."""

REPEAT_PROGRESS_S = 10.0
"""Seconds. Ghostty removes a progress that is not repeated within 15."""

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
    """Leave in order on SIGTERM, SIGHUP and SIGQUIT.

    Textual alone would leave mouse reporting, the alternate screen and the keyboard protocol
    switched on, and would wait for ever to write to a terminal that was closed.
    """
    loop = asyncio.get_running_loop()

    def leave(number: int, _frame: object) -> None:
        if _terminal_is_gone():
            _write_nowhere()
        loop.call_soon_threadsafe(app.exit, UiOutcome(128 + number), 128 + number)

    # At once: the loop may come too late.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
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


def progress_sequence(progress: Progress) -> str:
    """The bytes that show `progress` in the terminal's tab or task bar (ConEmu's OSC 9;4)."""
    return f"\x1b]9;4;{_PROGRESS[progress]}\x07"


def can_show_progress(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is known to take `progress_sequence`.

    Others, such as older versions of iTerm2 and WezTerm, show it as a notification. Within tmux and
    GNU screen, the bar belongs to all panes, so none may set it.

    Args:
        environ: The variables that terminals set about themselves.
    """
    if environ.get("TMUX") or environ.get("STY"):
        return False
    if environ.get("WT_SESSION") or environ.get("ConEmuANSI") == "ON":
        return True
    name = environ.get("TERM_PROGRAM", "").lower() or environ.get("TERM", "").lower()
    least = next((least for word, least in _TAKES_PROGRESS.items() if word in name), None)
    return least is not None and _version(environ.get("TERM_PROGRAM_VERSION", "")) >= least


def _version(text: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


class TerminalState:
    """Keeps the terminal's title, progress and mouse as they are wanted now.

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
        self._shows_title = True
        self._shows_progress = False
        self._progress: Progress = "none"

    @property
    def is_mouse_on(self) -> bool:
        """Whether clicks and drags come to the program."""
        return self._is_mouse_on

    def enter(self) -> None:
        """Save the terminal's own title, and show ours once there is one."""
        self.write(SAVE_TITLE)
        if self._title and self._shows_title:
            self.write(title_sequence(self._title))
        self.repeat_progress()
        if self._is_mouse_on != self._driver_has_mouse:
            self._send_mouse()

    def leave(self) -> None:
        """Give back what Textual's driver does not: to leave, or for a while.

        An empty title is each terminal's own, for those that did not remember the one before.
        """
        self.write((title_sequence("") if self._shows_title else "") + RESTORE_TITLE)
        if self._shows_progress and self._progress != "none":
            self.write(progress_sequence("none"))
        if self._is_mouse_on and not self._driver_has_mouse:
            self.write(_LEAVE_MOUSE + _NO_POSITIONS)

    def set_title(self, title: str) -> None:
        """Make `title` the terminal's title."""
        if title != self._title:
            self._title = title
            if self._shows_title:
                self.write(title_sequence(title))

    def show_state(self, *, in_title: bool, as_progress: bool) -> None:
        """Choose where the program's state is shown from now on."""
        if self._shows_title and not in_title:
            self.write(title_sequence(""))
        elif in_title and not self._shows_title and self._title:
            self.write(title_sequence(self._title))
        if self._shows_progress and not as_progress and self._progress != "none":
            self.write(progress_sequence("none"))
        self._shows_title, self._shows_progress = in_title, as_progress
        self.repeat_progress()

    def set_progress(self, progress: Progress) -> None:
        """Show `progress`, if the terminal can."""
        if progress != self._progress:
            self._progress = progress
            if self._shows_progress:
                self.write(progress_sequence(progress))

    def repeat_progress(self) -> None:
        """Show again what happens: terminals forget it after 15 seconds."""
        if self._shows_progress and self._progress != "none":
            self.write(progress_sequence(self._progress))

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
