"""Which folder holds the sessions, for the subcommands that only read files."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from agent_tui import paths
from agent_tui.cli.folders import present_folder
from agent_tui.config import Settings, load_settings
from agent_tui.errors import UsageError


def add_session_dir(parser: argparse.ArgumentParser) -> None:
    """Add ``--session-dir`` to `parser`."""
    parser.add_argument("--session-dir", metavar="DIR", help="folder of the session files")


def read_settings(session_dir: str | None, project_files: Sequence[Path] = ()) -> Settings:
    """The settings of files and environment, with `session_dir` from the command line."""
    user_file, flags = paths.user_config_dir() / "config.toml", {"session_dir": session_dir}
    return load_settings(user_file, os.environ, flags, project_files).settings


def session_root(settings: Settings) -> Path:
    """The folder of all sessions under `settings`, as a whole path: sessions name one another.

    Raises:
        UsageError: the folder named there begins with ``~`` of a person the system does not know,
            or with the present folder, and that was removed.
    """
    if settings.session_dir:
        try:
            folder = Path(settings.session_dir).expanduser()
            return folder if folder.is_absolute() else present_folder() / folder
        except RuntimeError as error:
            raise UsageError(
                f"{settings.session_dir}: there is no such home folder.", "Write the whole path."
            ) from error
    return paths.default_session_dir()
