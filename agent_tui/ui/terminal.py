"""Running the app so that the terminal is left as it was found, on every way out."""

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, TextIO

from agent_tui.ui.options import UiOptions, UiOutcome
from agent_tui.ui.sanitise import safe_text

if TYPE_CHECKING:
    from agent_tui.ui.app import AgentApp

MAX_TITLE_CHARS = 80


def run_ui(options: UiOptions) -> UiOutcome:
    """Show the screen until the person leaves, then say how to come back."""
    from agent_tui.ui.app import AgentApp

    app = AgentApp(options)
    outcome = app.run(mouse=options.settings.mouse) or UiOutcome(exit_code=app.return_code or 0)
    if hint := farewell(options):
        sys.stdout.write(hint)
        sys.stdout.flush()
    return outcome


def farewell(options: UiOptions) -> str:
    """How to resume the session that was left; empty if there is nothing to resume."""
    log = options.runtime.log
    if log.path is None or not log.entries:
        return ""
    name = f" ({safe_text(log.name, keep_newlines=False)})" if log.name else ""
    return f"Session {log.header.id[:8]}{name} is kept. Go on with: agent-tui -r {log.header.id[:8]}\n"


def leave_on_signals(app: "AgentApp") -> None:
    """Leave in order on SIGTERM and SIGHUP: Textual alone would leave mouse reporting, the
    alternate screen and the keyboard protocol switched on.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, app.exit, UiOutcome(128 + number), 128 + number)


def set_title(out: TextIO, title: str) -> None:
    """Set the terminal's title (OSC 2); what could end the sequence early is taken out."""
    text = safe_text(title, keep_newlines=False)[:MAX_TITLE_CHARS]
    out.write(f"\x1b]2;{text}\x07")
    out.flush()
