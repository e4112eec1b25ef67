"""Running the app so that the terminal is left as it was found, on every way out."""

import asyncio
import os
import shlex
import signal
import sys
import termios
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.ui.outcome import UiOutcome
from agent_tui.ui.sanitise import safe_text

if TYPE_CHECKING:
    from rich.text import Text

    from agent_tui.ui.app import AgentApp
    from agent_tui.ui.options import UiOptions

MAX_TITLE_CHARS = 80
END_WITHIN_S = 10
"""How long leaving may take once the terminal is gone."""


def run_ui(
    load: "Callable[[], UiOptions]",
    *,
    theme: str = "",
    mouse: bool = True,
    folder: Path | None = None,
    before_loading: "Callable[[AgentApp], Awaitable[None]] | None" = None,
) -> UiOutcome:
    """Show the screen until the person leaves, then say how to come back.

    Args:
        load: Builds what the screen works on; runs in a thread after the first paint.
        theme: Wanted from the first paint on; empty for the default.
        mouse: Whether the mouse belongs to the program.
        folder: Where it will work, as far as that is known before loading.
        before_loading: Asks what has to be known before `load`.
    """
    from agent_tui.ui.app import AgentApp
    from agent_tui.ui.status_bar import short_path

    shown = short_path(folder, Path.home()) if folder is not None else ""
    app = AgentApp(load, theme, shown, before_loading)
    outcome = app.run(mouse=mouse) or UiOutcome(exit_code=app.return_code or 0)
    if app.parts is not None and (hint := farewell(app.parts.options)):
        sys.stdout.write(hint)
        sys.stdout.flush()
    return outcome


def farewell(options: "UiOptions") -> str:
    """How to resume the session that was left; empty if there is nothing to resume."""
    log = options.runtime.log
    if log.path is None or not log.entries:
        return ""
    name = f" ({safe_text(log.name, keep_newlines=False)})" if log.name else ""
    short_id = log.header.id[:8]
    is_found_by_id = log.path.is_relative_to(options.runtime.store.root)
    ref = short_id if is_found_by_id else safe_text(shlex.quote(str(log.path)))
    return f"Session {short_id}{name} is kept. Go on with: agent-tui -r {ref}\n"


def crash_report(error: BaseException | None) -> "Text":
    """Where the program broke, without keys and conversation: no values of variables."""
    from rich.text import Text

    from agent_tui.providers.keys import secret_values
    from agent_tui.secret_text import mask_secrets

    trace = "".join(traceback.format_exception(error)) if error else "It is not known where."
    return Text(mask_secrets(safe_text(trace), secret_values(os.environ)))


def leave_on_signals(app: "AgentApp") -> None:
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
    signal.alarm(END_WITHIN_S)


def title_sequence(title: str) -> str:
    """The bytes that set the terminal's title (OSC 2), without what could end them early."""
    return f"\x1b]2;{safe_text(title, keep_newlines=False)[:MAX_TITLE_CHARS]}\x07"


SAVE_TITLE = "\x1b[22;2t"
RESTORE_TITLE = "\x1b[23;2t"
"""xterm's title stack; terminals without one ignore both."""
