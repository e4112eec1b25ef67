"""Runs the app, says how it was left, and leaves the terminal as it was found."""

import os
import shlex
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.safe_text import safe_text
from agent_tui.ui.terminal.outcome import UiOutcome

if TYPE_CHECKING:
    from agent_tui.ui.options import UiOptions
    from agent_tui.ui.window import Window


def run_ui(
    load: "Callable[[], UiOptions]",
    *,
    theme: str = "",
    mouse: bool = True,
    folder: Path | None = None,
    before_loading: "Callable[[Window], Awaitable[None]] | None" = None,
) -> UiOutcome:
    """Show the screen until the user leaves, then say how to come back.

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

    asks = not theme
    theme = theme or theme_for_colours(os.environ.get("COLORFGBG", ""))
    shown = short_path(folder, Path.home()) if folder is not None else ""
    app = AgentApp(load, theme, shown, before_loading, has_mouse=mouse, asks_background=asks)
    outcome = app.run(mouse=mouse) or UiOutcome(exit_code=app.return_code or 0)
    if app.loaded is not None and (hint := farewell(app.controller.options)):
        from agent_tui.ui.terminal.scrollback import last_screens, write_out

        if outcome.exit_code == 0:
            size = shutil.get_terminal_size()
            said = last_screens(app.view.widgets.transcript.blocks, size.columns, size.lines)
            write_out(f"{said}\n\n" if said else "")
        left = (safe_text(line, keep_newlines=False) for line in app.controller.left)
        write_out("".join(f"{line}\n" for line in (*left, hint.rstrip("\n"))))
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
    return f"Session {short_id}{name} is saved. Resume it with: agent-tui {where}-r {ref}\n"
