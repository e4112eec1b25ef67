"""What fills the context window, and making it smaller: ``/context`` and ``/compact``."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "context",
    subcommands=(
        Subcommand(
            "context",
            "print the messages a session would send to the model",
            "agent_tui.features.context.subcommand",
        ),
    ),
    brings={
        "agent_tui.commands": (
            "agent_tui.features.context.command:context",
            "agent_tui.features.context.command:tools",
            "agent_tui.features.context.compact:compact",
            "agent_tui.features.context.compact:uncompact",
        )
    },
)
