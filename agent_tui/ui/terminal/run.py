"""Running the app so that the terminal is left as it was found, on every way out."""

import asyncio
import os
import shlex
import shutil
import signal
import termios
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.safe_text import safe_text
from agent_tui.ui.terminal.outcome import UiOutcome

if TYPE_CHECKING:
    from rich.text import Text
    from textual.app import App

    from agent_tui.ui.options import UiOptions
    from agent_tui.ui.window import Window

END_WITHIN_S = 10
"""How long leaving may take once the terminal is gone."""


def run_ui(
    load: "Callable[[], UiOptions]",
    *,
    theme: str = "",
    mouse: bool = True,
    folder: Path | None = None,
    before_loading: "Callable[[Window], Awaitable[None]] | None" = None,
) -> UiOutcome:
    """Show the screen until the person leaves, then say how to come back.

    Args:
        load: Builds what the screen works on; runs in a thread after the first paint.
        theme: Wanted from the first paint on; empty for the one that fits the terminal.
        mouse: Whether the mouse belongs to the program.
        folder: Where it will work, as far as that is known before loading.
        before_loading: Asks what has to be known before `load`.
    """
    from agent_tui.commands.core.short_words import short_path
    from agent_tui.ui.app import AgentApp
    from agent_tui.ui.theme.themes import theme_for_colours

    theme = theme or theme_for_colours(os.environ.get("COLORFGBG", ""))
    shown = short_path(folder, Path.home()) if folder is not None else ""
    app = AgentApp(load, theme, shown, before_loading, has_mouse=mouse)
    outcome = app.run(mouse=mouse) or UiOutcome(exit_code=app.return_code or 0)
    if app.loaded is not None and (hint := farewell(app.controller.options)):
        from agent_tui.ui.terminal.scrollback import last_screens, write_out

        if outcome.exit_code == 0:
            size = shutil.get_terminal_size()
            said = last_screens(app.view.widgets.transcript.blocks, size.columns, size.lines)
            write_out(f"{said}\n\n" if said else "")
        write_out(hint)
    return outcome


def farewell(options: "UiOptions") -> str:
    """How to resume the session that was left, to be typed in the same folder.

    Empty if there is nothing to resume.
    """
    log = options.runtime.conversation.log
    if log.path is None or not log.entries:
        return ""
    name = f" ({safe_text(log.name, keep_newlines=False)})" if log.name else ""
    short_id = log.header.id[:8]
    is_found_by_id = log.path.is_relative_to(options.runtime.services.store.root)
    ref = short_id if is_found_by_id else safe_text(shlex.quote(str(log.path)))
    where = ""
    if is_found_by_id and options.session_dir:
        where = f"--session-dir {safe_text(shlex.quote(options.session_dir))} "
    return f"Session {short_id}{name} is kept. Go on with: agent-tui {where}-r {ref}\n"


def crash_report(error: BaseException | None) -> "Text":
    """Where the program broke, without keys and conversation: no values of variables."""
    from rich.text import Text

    from agent_tui.providers.keys import secret_values
    from agent_tui.secret_text import mask_secrets

    trace = "".join(traceback.format_exception(error)) if error else "It is not known where."
    return Text(mask_secrets(safe_text(trace), secret_values(os.environ)))


def leave_on_signals(app: "App[UiOutcome]") -> None:
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
