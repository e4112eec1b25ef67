"""The few settings that are needed before the program behind the screen is loaded.

They are read without the checks of `load_settings`, which follow a moment later.
"""

import contextlib
import os
from typing import NamedTuple

from agent_tui import paths
from agent_tui.cli.arguments import Arguments
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import is_file

_YES = ("1", "true", "yes", "on", "t", "y")


class FirstPaint(NamedTuple):
    """What the first paint of the screen depends on. `theme` is empty for the default one."""

    theme: str
    mouse: bool


def is_switched_on(name: str, arguments: Arguments) -> bool:
    """Whether ``--NAME``, ``AGENT_TUI_NAME`` or ``NAME = true`` in the settings asks for it."""
    if name in arguments.switches:
        return True
    variable = os.environ.get(f"AGENT_TUI_{name.upper()}")
    if variable is not None:
        return variable.strip().lower() in _YES
    return _read_unchecked().get(name) is True


def names_plugins() -> bool:
    """Whether the environment or the user's settings name plugins."""
    return "AGENT_TUI_PLUGINS" in os.environ or bool(_read_unchecked().get("plugins"))


def first_paint() -> FirstPaint:
    """Theme and mouse, from the environment and the user's settings."""
    values = _read_unchecked()
    theme = os.environ.get("AGENT_TUI_THEME", values.get("theme"))
    return FirstPaint(theme if isinstance(theme, str) else "", values.get("mouse") is not False)


def _read_unchecked() -> dict[str, object]:
    file = paths.user_config_dir() / "config.toml"
    if not is_file(file):
        return {}
    import tomllib  # imported only if there is a file, to save milliseconds at start-up

    with contextlib.suppress(OSError, ValueError):
        return tomllib.loads(read_regular_file(file).decode("utf-8"))
    return {}
