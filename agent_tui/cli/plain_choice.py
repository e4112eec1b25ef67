"""Whether the person wants lines instead of the screen; known before anything is loaded."""

import contextlib
import os

from agent_tui import paths
from agent_tui.cli.arguments import Arguments

_YES = ("1", "true", "yes", "on", "t", "y")


def wants_plain(arguments: Arguments) -> bool:
    """Whether ``--plain``, ``AGENT_TUI_PLAIN`` or ``plain = true`` in the settings says so.

    The settings are read without their checks, which come when all of them are loaded.
    """
    if arguments.is_plain:
        return True
    said = os.environ.get("AGENT_TUI_PLAIN")
    if said is not None:
        return said.strip().lower() in _YES
    file = paths.user_config_dir() / "config.toml"
    if not file.is_file():
        return False
    import tomllib

    with contextlib.suppress(OSError, ValueError):
        return tomllib.loads(file.read_text("utf-8")).get("plain") is True
    return False
