"""Settings: what there is, what is in force and where it is set, and changing one's own."""

from agent_tui.config.loading import LoadedSettings, Origin, SettingProblem, load_settings
from agent_tui.config.schema import (
    STATUS_FIELDS,
    STRATEGY_NAMES,
    CompactionSettings,
    CompactionStrategy,
    Durability,
    HookEvent,
    HookSettings,
    LocalSettings,
    McpServerSettings,
    McpSettings,
    ModelSettings,
    NotifySetting,
    PermissionMode,
    PermissionSettings,
    SandboxMode,
    Settings,
    strategy_named,
)
from agent_tui.config.specs import setting_variables

__all__ = [
    "STATUS_FIELDS",
    "STRATEGY_NAMES",
    "CompactionSettings",
    "CompactionStrategy",
    "Durability",
    "HookEvent",
    "HookSettings",
    "LoadedSettings",
    "LocalSettings",
    "McpServerSettings",
    "McpSettings",
    "ModelSettings",
    "NotifySetting",
    "Origin",
    "PermissionMode",
    "PermissionSettings",
    "SandboxMode",
    "SettingProblem",
    "Settings",
    "load_settings",
    "setting_variables",
    "strategy_named",
]
