"""Who asked for lines of a file and why: a tool, a command and a subcommand."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "why",
    subcommands=(
        Subcommand(
            "why", "explain why a line of a file is there", "agent_tui.features.why.subcommand"
        ),
    ),
    tools=("agent_tui.features.why.tool:make_tool",),
    part="agent_tui.features.why.part:WhyPart",
    brings={"agent_tui.commands": ("agent_tui.features.why.command:why",)},
)
