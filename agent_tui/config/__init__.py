"""Settings: all that exist; `loading` reads those in force, `user_file` changes the user's own."""

from agent_tui.config.schema import (
    PLUGIN_NAME,
    STATUS_FIELDS,
    STRATEGY_NAMES,
    CompactionSettings,
    Durability,
    HookEvent,
    HookSettings,
    ModelSettings,
    PermissionMode,
    PermissionSettings,
    Settings,
    TerminalStateSetting,
    check_target,
)

__all__ = [
    "PLUGIN_NAME",
    "STATUS_FIELDS",
    "STRATEGY_NAMES",
    "CompactionSettings",
    "Durability",
    "HookEvent",
    "HookSettings",
    "ModelSettings",
    "PermissionMode",
    "PermissionSettings",
    "Settings",
    "TerminalStateSetting",
    "check_target",
]
