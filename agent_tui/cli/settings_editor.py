"""Changes the user's settings, and refuses values that the program could not use."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from agent_tui.cli.plugins import plugins_in_shell
from agent_tui.cli.settings import user_config_path
from agent_tui.commands.core.plugin_kinds import PROVIDERS
from agent_tui.config.loading import load_settings
from agent_tui.config.specs import SettingSpec
from agent_tui.config.user_file import SettingsEditor, UserConfigFile
from agent_tui.errors import ConfigError
from agent_tui.key_actions import KeyMap
from agent_tui.permissions.rules import parse_rule

_RULES = frozenset({"allow", "ask", "deny"})


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
    from agent_tui.providers.catalog import ModelCatalog  # heavy and seldom needed
    from agent_tui.providers.local_models import own_local_models
    from agent_tui.providers.registry import providers_with

    settings = load_settings(user_config_path(), os.environ).settings
    wanted = settings.model_copy(update={"model": name})
    use_stored_keys()
    try:
        ModelCatalog(
            wanted,
            os.environ,
            local=own_local_models(wanted, os.environ),
            own=providers_with(plugins_in_shell(PROVIDERS).of(PROVIDERS)),
        ).default_model()
    except ConfigError as error:
        return str(error)
    return ""
