"""Completion in shells: the script, and the answers to Tab."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "completion",
    subcommands=(
        Subcommand(
            "completion",
            "print the completion script for your shell",
            "agent_tui.features.completion.subcommand",
        ),
    ),
    shell_answer="agent_tui.features.completion.subcommand:answer_shell",
)
