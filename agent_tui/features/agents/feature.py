"""One list over the sessions of all agents on this machine: ``agent-tui agents``, ``/agents``."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "agents",
    subcommands=(
        Subcommand(
            "agents",
            "list the sessions of all agents on this machine",
            "agent_tui.features.agents.shell",
        ),
    ),
    pickers={
        "agent_tui.features.agents.command:PickableAgents": (
            "agent_tui.features.agents.screen:make_picker"
        )
    },
    brings={"agent_tui.commands": ("agent_tui.features.agents.command:agents",)},
)
