"""Trusted folders to list, add and remove in the shell."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "trust",
    subcommands=(
        Subcommand(
            "trust", "list, add or remove trusted folders", "agent_tui.features.trust.subcommand"
        ),
    ),
)
