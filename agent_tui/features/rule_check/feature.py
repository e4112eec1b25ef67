"""Permission rules in the shell: what they decide about a call, and which there are."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "rule_check",
    subcommands=(
        Subcommand(
            "permissions",
            "check what may run without asking; list or remove rules",
            "agent_tui.features.rule_check.subcommand",
        ),
    ),
)
