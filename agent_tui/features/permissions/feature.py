"""What may run: ``/permissions``, ``/plan`` and ``agent-tui permissions``."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "permissions",
    subcommands=(
        Subcommand(
            "permissions",
            "check what may run without asking; list or remove rules",
            "agent_tui.features.permissions.subcommand",
        ),
    ),
    brings={
        "agent_tui.commands": (
            "agent_tui.features.permissions.command:permissions",
            "agent_tui.features.permissions.command:plan",
        )
    },
)
