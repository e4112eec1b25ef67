"""Editors hold the conversation, over the Agent Client Protocol."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "acp",
    subcommands=(
        Subcommand(
            "acp",
            "run as an agent for an editor (Zed, JetBrains, Neovim ...)",
            "agent_tui.features.acp.command",
        ),
    ),
)
