"""Reads and changes the settings in force, for the command line and its subcommands."""

import argparse
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from agent_tui import paths
from agent_tui.cli.folders import present_folder
from agent_tui.config import LoadedSettings, SettingProblem, Settings, load_settings
from agent_tui.config.specs import SettingSpec
from agent_tui.config.user_file import SettingsEditor, UserConfigFile
from agent_tui.errors import ConfigError, UsageError
from agent_tui.key_actions import KeyMap
from agent_tui.local_models.library import ModelLibrary
from agent_tui.permissions.project_files import config_files
from agent_tui.permissions.rules import parse_rule
from agent_tui.permissions.trust import FolderTrust
from agent_tui.providers.log_file import append_to_log

_RULES = frozenset({"allow", "ask", "deny"})


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


def usable_settings(loaded: LoadedSettings) -> Settings:
    """The settings to run with, unless a model address in them is unusable.

    Ignoring it like other wrong settings would send the conversation to another server. A project's
    file cannot set an address, so a problem there is only reported.

    Raises:
        UsageError: An address is unusable.
    """
    for problem in loaded.problems:
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


def settings_editor(
    project_files: Callable[[], Sequence[Path]],
    flags: Mapping[str, JsonValue] | None = None,
) -> SettingsEditor:
    """An editor that reads the settings in force and changes the user's own.

    Args:
        project_files: The project's settings files in force, the most general first.
        flags: Values from the command line, by the name of the setting.
    """
    file = user_config_path()

    def refuse(spec: SettingSpec, value: JsonValue) -> str:
        if spec.section == ("keys",):
            return _why_no_keys(spec.key[-1], value)
        if not value:
            return ""
        if spec.section == ("permissions",) and spec.key[-1] in _RULES:
            return _why_no_rule(value)
        if spec.key == ("theme",):
            return _why_no_theme(str(value))
        if spec.key == ("model",):
            return _why_no_model(str(value))
        return ""

    return SettingsEditor(
        UserConfigFile(file),
        load=lambda: load_settings(file, os.environ, flags, project_files()),
        load_own=lambda: load_settings(file, {}),
        refuse=refuse,
    )


def _why_no_rule(value: JsonValue) -> str:
    try:
        for text in value if isinstance(value, list) else ():
            parse_rule(str(text), "deny")
    except ConfigError as error:
        return str(error)
    return ""


def _why_no_keys(name: str, value: JsonValue) -> str:
    """Why these keys clash with the user's other keys; empty if they do not."""
    keys = tuple(str(key) for key in value) if isinstance(value, list) else ()
    chosen = load_settings(user_config_path(), {}).settings.keys.key_map.chosen
    return next((why for _, why in KeyMap({**chosen, name: keys}).clashes()), "")


def _why_no_theme(name: str) -> str:
    from agent_tui.ui.theme.themes import theme_names  # Textual: imported only if a theme is set

    names = theme_names()
    return "" if name in names else f"no theme {name!r}. Themes: {', '.join(names)}."


def _why_no_model(name: str) -> str:
    """What the program would say about the model at its next start; empty if it is fine."""
    from agent_tui.cli.key_store import use_stored_keys
    from agent_tui.cli.plugins import plugins_in_shell
    from agent_tui.commands.core.plugin_kinds import PROVIDERS
    from agent_tui.providers.catalog import ModelCatalog  # heavy and seldom needed
    from agent_tui.providers.registry import providers_with

    settings = load_settings(user_config_path(), os.environ).settings
    wanted = settings.model_copy(update={"model": name})
    use_stored_keys()
    try:
        ModelCatalog(
            wanted,
            os.environ,
            library=ModelLibrary(paths.models_dir()),
            own=providers_with(plugins_in_shell(PROVIDERS).of(PROVIDERS)),
        ).default_model()
    except ConfigError as error:
        return str(error)
    return ""


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
