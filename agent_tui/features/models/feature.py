"""``agent-tui models``: the models that can be chosen."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "models",
    subcommands=(
        Subcommand(
            "models",
            "list models; download, add or remove local ones",
            "agent_tui.features.models.command",
        ),
    ),
)
