"""Background jobs, to list, show and stop: ``/jobs`` and ``/background``."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "jobs",
    brings={
        "agent_tui.commands": (
            "agent_tui.features.jobs.command:jobs",
            "agent_tui.features.jobs.command:background",
        )
    },
)
