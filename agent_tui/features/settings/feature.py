"""Settings to see and change: ``/settings`` and ``agent-tui config``."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "settings",
    subcommands=(
        Subcommand("config", "show and change settings", "agent_tui.features.settings.subcommand"),
    ),
    brings={"agent_tui.commands": ("agent_tui.features.settings.command:settings",)},
)
