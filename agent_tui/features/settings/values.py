"""Values of settings and where they come from, as users read them."""

from pathlib import Path

from agent_tui.config import Settings
from agent_tui.config.loading import Origin
from agent_tui.config.specs import SettingSpec, mask, value_at
from agent_tui.features.settings.config_file import toml_text
from agent_tui.safe_text import safe_text

NOTHING = "–"


def value_text(settings: Settings, spec: SettingSpec) -> str:
    """A value for display, without keys; `NOTHING` for an empty one."""
    value = mask(value_at(settings, spec.key))
    text = value if isinstance(value, str) else toml_text(value)
    return safe_text(text, keep_newlines=False) or NOTHING


def short_origin(origin: Origin) -> str:
    """The source of a setting, in a word or two."""
    match origin.layer:
        case "default":
            return "default"
        case "own file":
            return f"{Path(origin.source).name}:{origin.line}"
        case "project file":
            return "the project"
        case "environment":
            return "environment"
        case "command line":
            return origin.source
