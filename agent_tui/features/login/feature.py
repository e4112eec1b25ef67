"""``agent-tui login`` and ``agent-tui logout``. Keys that are stored count without it, too."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "login",
    subcommands=(
        Subcommand(
            "login",
            "sign in to an account or store a provider's key",
            "agent_tui.features.login.login",
        ),
        Subcommand(
            "logout",
            "sign out of an account or delete a stored key",
            "agent_tui.features.login.logout",
        ),
    ),
)
