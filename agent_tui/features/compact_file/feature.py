"""A session in a file, of agent-tui or another agent, compacted into a new one."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "compact_file",
    subcommands=(
        Subcommand(
            "compact",
            "compact a session into a new one",
            "agent_tui.features.compact_file.subcommand",
        ),
    ),
)
