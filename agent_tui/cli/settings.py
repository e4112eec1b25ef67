"""Reads the settings in force, for the command line and its subcommands."""

import argparse
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent_tui import paths
from agent_tui.cli.folders import present_folder
from agent_tui.config import Settings
from agent_tui.config.loading import LoadedSettings, SettingProblem, load_settings
from agent_tui.config.specs import SettingSpec, spec_of
from agent_tui.errors import UsageError
from agent_tui.permissions.project_files import config_files
from agent_tui.permissions.trust import FolderTrust
from agent_tui.providers.log_file import append_to_log


def user_config_path() -> Path:
    """The path of the user's ``config.toml``; it may be missing."""
    return paths.user_config_dir() / "config.toml"


def add_session_dir(parser: argparse.ArgumentParser) -> None:
    """Add ``--session-dir`` to `parser`."""
    parser.add_argument("--session-dir", metavar="DIR", help="folder for session files")


def read_settings(session_dir: str | None, project_files: Sequence[Path] = ()) -> Settings:
    """The settings of files and environment, with `session_dir` from the command line."""
    flags = {"session_dir": session_dir}
    return load_settings(user_config_path(), os.environ, flags, project_files).settings


def is_unusable_address(problem: SettingProblem) -> bool:
    """Whether `problem` is an unusable model address that the user set."""
    return problem.key.rpartition(".")[2] == "base_url" and not problem.is_of_project


def unknown_limit(problem: SettingProblem) -> SettingSpec | None:
    """The limit that `problem` leaves unknown, so that no request may be sent; None if none."""
    spec = spec_of(tuple(problem.key.split(".")))
    is_needed = spec is not None and spec.needs_value and not problem.is_of_project
    return spec if is_needed else None


def usable_settings(loaded: LoadedSettings) -> Settings:
    """The settings to run with, unless a model address or a limit in them is unusable.

    Ignoring it like other wrong settings would send the conversation to another server, or let it
    cost any amount. A project's file cannot set these, so a problem there is only reported.

    Raises:
        UsageError: An address or a limit is unusable.
    """
    for problem in loaded.problems:
        if (spec := unknown_limit(problem)) is not None:
            raise UsageError(
                f"{problem.place}: {problem.problem}. Until it can be read, no request is sent.",
                f"It takes {spec.allowed}, such as: agent-tui config set {spec.name} 5.",
            )
        if is_unusable_address(problem):
            where = "--base-url" if problem.source == "command line" else problem.place
            raise UsageError(
                f"{where}: {problem.problem}.",
                "Write it like http://127.0.0.1:8080/v1.",
            )
    return loaded.settings


def session_root(settings: Settings) -> Path:
    """The absolute path of the folder of all sessions: sessions name one another by path.

    Raises:
        UsageError: The folder begins with ``~`` of an unknown user, or is relative and the current
            folder was removed.
    """
    if settings.session_dir:
        try:
            folder = Path(settings.session_dir).expanduser()
            return folder if folder.is_absolute() else present_folder() / folder
        except RuntimeError as error:
            raise UsageError(
                f"session_dir {settings.session_dir}: no such home folder.", "Write the full path."
            ) from error
    return paths.default_session_dir()


def config_files_in_effect(folder: Path | None, trust: FolderTrust) -> tuple[Path, ...]:
    """The settings files of the project in `folder` that take effect, the most general first."""
    return tuple(filter(trust.may_obey, config_files(folder))) if folder else ()


_DEBUG_VARIABLE = "AGENT_TUI_DEBUG_CONTEXT"

_LINES_AT_ONCE = 500
"""Lines per log entry; an entry's size is limited, and a long session has more lines."""


def context_debug_log(
    environ: Mapping[str, str], log_path: Path
) -> Callable[[Sequence[str]], None] | None:
    """A function that writes decisions to `log_path`; None unless the variable is 1.

    A log that cannot be written stops nothing.
    """
    if environ.get(_DEBUG_VARIABLE) != "1":
        return None

    def write(decisions: Sequence[str]) -> None:
        with contextlib.suppress(OSError):
            for start in range(0, len(decisions), _LINES_AT_ONCE):
                some = decisions[start : start + _LINES_AT_ONCE]
                append_to_log(log_path, "\n".join(f"context: {line}" for line in some))

    return write
