"""Settings: all that exist, those in force and their sources, and changing the user's own."""

from agent_tui.config.loading import LoadedSettings, Origin, SettingProblem, load_settings
from agent_tui.config.schema import (
    PLUGIN_NAME,
    STATUS_FIELDS,
    STRATEGY_NAMES,
    CompactionSettings,
    Durability,
    GoalSettings,
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
)
from agent_tui.config.specs import setting_variables

__all__ = [
    "PLUGIN_NAME",
    "STATUS_FIELDS",
    "STRATEGY_NAMES",
    "CompactionSettings",
    "Durability",
    "GoalSettings",
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
]
