"""The sandbox of the model's commands, as the settings and the program's folders have it."""

from collections.abc import Mapping
from pathlib import Path

from agent_tui import paths
from agent_tui.cli.session_root import session_root
from agent_tui.config import Settings
from agent_tui.tools.processes.sandbox import Sandbox


def command_sandbox(settings: Settings, environ: Mapping[str, str]) -> Sandbox:
    """A sandbox that has tried nothing yet.

    Args:
        settings: Whether it is wanted, and where the sessions are.
        environ: Where bubblewrap is looked for.

    Raises:
        UsageError: the folder of the sessions cannot be.
    """
    own = (paths.user_config_dir(), paths.user_data_dir(), paths.log_file().parent)
    return Sandbox(
        settings.sandbox,
        home=Path.home(),
        own_folders=(*own, session_root(settings)),
        scratch_parent=paths.user_cache_dir() / "sandbox",
        environ=environ,
    )
