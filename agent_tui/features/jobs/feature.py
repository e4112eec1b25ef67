"""Background jobs, to list, show and stop: ``/jobs`` and ``/background``."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "jobs",
    settings="agent_tui.features.jobs.settings:JobSettings",
    part="agent_tui.features.jobs.part:JobsPart",
    brings={
        "agent_tui.commands": (
            "agent_tui.features.jobs.command:jobs",
            "agent_tui.features.jobs.command:background",
        )
    },
)
