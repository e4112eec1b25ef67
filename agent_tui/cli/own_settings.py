"""The person's settings as the shell and the screen show and change them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from agent_tui import paths
from agent_tui.config import load_settings
from agent_tui.config.catalogue import SettingSpec
from agent_tui.config.desk import SettingsDesk
from agent_tui.config.own_file import OwnFile
from agent_tui.errors import ConfigError
from agent_tui.local_models.library import ModelLibrary
from agent_tui.permissions.rules import parse_rule

_RULES = frozenset({"allow", "ask", "deny"})


def own_settings_file() -> Path:
    """The person's ``config.toml``; may be missing."""
    return paths.user_config_dir() / "config.toml"


def settings_desk(
    environ: Mapping[str, str],
    project_files: Callable[[], Sequence[Path]],
    flags: Mapping[str, JsonValue] | None = None,
) -> SettingsDesk:
    """Where the settings in force are read, and the person's own are changed.

    Args:
        environ: The environment.
        project_files: The settings of the project that are obeyed now, the most general first.
        flags: What the command line says, by the name of the setting.
    """
    file = own_settings_file()

    def objection(spec: SettingSpec, value: JsonValue) -> str:
        if not value:
            return ""
        if spec.section == ("permissions",) and spec.key[-1] in _RULES:
            return _rule_objection(value)
        if spec.key == ("theme",):
            return _theme_objection(str(value))
        if spec.key == ("model",):
            return _model_objection(str(value), environ)
        return ""

    return SettingsDesk(
        OwnFile(file),
        load=lambda: load_settings(file, environ, flags, project_files()),
        load_own=lambda: load_settings(file, {}),
        objection=objection,
    )


def _rule_objection(value: JsonValue) -> str:
    try:
        for text in value if isinstance(value, list) else ():
            parse_rule(str(text), "deny")
    except ConfigError as error:
        return str(error)
    return ""


def _theme_objection(name: str) -> str:
    from agent_tui.ui.theme import theme_names

    names = theme_names()
    return "" if name in names else f"there is no theme {name!r}. There are {', '.join(names)}."


def _model_objection(name: str, environ: Mapping[str, str]) -> str:
    """What the program would say of the model at its next start."""
    from agent_tui.providers.catalog import ModelCatalog

    settings = load_settings(own_settings_file(), environ).settings
    wanted = settings.model_copy(update={"model": name})
    try:
        ModelCatalog(wanted, environ, library=ModelLibrary(paths.models_dir())).default_model()
    except ConfigError as error:
        return str(error)
    return ""
