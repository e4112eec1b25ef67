"""``agent-tui sessions``: works on session files from the shell."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "sessions",
    subcommands=(
        Subcommand(
            "sessions",
            "list, show, export, import, share, rename or delete sessions",
            "agent_tui.features.sessions.command",
        ),
    ),
)
