"""``agent-tui doctor``: what works on this machine, and how to fix the rest."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "doctor",
    subcommands=(
        Subcommand(
            "doctor", "check the setup and suggest fixes", "agent_tui.features.doctor.command"
        ),
    ),
)
