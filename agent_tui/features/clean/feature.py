"""``agent-tui clean``: what the program stored on this machine, and how to remove it."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "clean",
    subcommands=(
        Subcommand(
            "clean",
            "list what is stored on this machine, remove what you choose",
            "agent_tui.features.clean.command",
        ),
    ),
)
