"""Running the app so that the terminal is left as it was found, on every way out."""

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.ui.outcome import UiOutcome
from agent_tui.ui.sanitise import safe_text

if TYPE_CHECKING:
    from agent_tui.ui.app import AgentApp
    from agent_tui.ui.options import UiOptions

MAX_TITLE_CHARS = 80


def run_ui(
    load: "Callable[[], UiOptions]",
    *,
    theme: str = "",
    mouse: bool = True,
    folder: Path | None = None,
) -> UiOutcome:
    """Show the screen until the person leaves, then say how to come back.

    Args:
        load: Builds what the screen works on; runs in a thread after the first paint.
        theme: Wanted from the first paint on; empty for the default.
        mouse: Whether the mouse belongs to the program.
        folder: Where it will work, as far as that is known before loading.
    """
    from agent_tui.ui.app import AgentApp
    from agent_tui.ui.status_bar import short_path

    app = AgentApp(load, theme, short_path(folder, Path.home()) if folder is not None else "")
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
    return f"Session {short_id}{name} is kept. Go on with: agent-tui -r {short_id}\n"


def leave_on_signals(app: "AgentApp") -> None:
    """Leave in order on SIGTERM and SIGHUP.

    Textual alone would leave mouse reporting, the alternate screen and the keyboard protocol
    switched on.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, app.exit, UiOutcome(128 + number), 128 + number)


def title_sequence(title: str) -> str:
    """The bytes that set the terminal's title (OSC 2), without what could end them early."""
    return f"\x1b]2;{safe_text(title, keep_newlines=False)[:MAX_TITLE_CHARS]}\x07"


SAVE_TITLE = "\x1b[22;2t"
RESTORE_TITLE = "\x1b[23;2t"
"""xterm's title stack; terminals without one ignore both."""
