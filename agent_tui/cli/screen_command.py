"""``agent-tui``: the screen, up before the program behind it is loaded."""

import contextlib
import dataclasses
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui import paths
from agent_tui.cli.arguments import Arguments
from agent_tui.errors import UsageError
from agent_tui.ui.outcome import UiOutcome
from agent_tui.ui.terminal import run_ui

if TYPE_CHECKING:
    from agent_tui.ui.options import UiOptions


def run_screen(arguments: Arguments) -> int:
    """Open the screen; returns the exit code.

    Raises:
        UsageError: there is no terminal.
        AgentTuiError: the program could not be built; the terminal is restored before.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The screen needs a terminal.", "Use -p to run one prompt without a screen."
        )
    outcome = _show(arguments)
    if outcome.wants == "demo":
        outcome = _show(dataclasses.replace(arguments, is_demo=True))
    if outcome.error is not None:
        raise outcome.error
    return outcome.exit_code


def _show(arguments: Arguments) -> UiOutcome:
    theme, mouse = _first_paint_settings()
    folder = None if arguments.is_demo else (arguments.cwd or Path()).absolute()
    return run_ui(partial(_load, arguments), theme=theme, mouse=mouse, folder=folder)


def _load(arguments: Arguments) -> "UiOptions":
    from agent_tui.cli.screen_options import load_options

    return load_options(arguments)


def _first_paint_settings() -> tuple[str, bool]:
    """Theme and mouse, read without the checks of `load_settings`, which come a moment later."""
    values: dict[str, object] = {}
    file = paths.user_config_dir() / "config.toml"
    if file.is_file():
        import tomllib

        with contextlib.suppress(OSError, ValueError):
            values = tomllib.loads(file.read_text("utf-8"))
    theme, mouse = os.environ.get("AGENT_TUI_THEME", values.get("theme")), values.get("mouse")
    return (theme if isinstance(theme, str) else ""), mouse is not False
