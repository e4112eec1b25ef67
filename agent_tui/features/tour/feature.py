"""A scripted tour: an option, a command, and a provider of prepared replies."""

from agent_tui.feature import Feature, Option

FEATURE = Feature(
    "tour",
    options=(
        Option(
            "demo",
            "take a scripted tour, no model needed",
            "agent_tui.features.tour.steps:TOUR",
        ),
    ),
    brings={
        "agent_tui.commands": ("agent_tui.features.tour.command:tour",),
        "agent_tui.providers": ("agent_tui.features.tour.provider:PROVIDER",),
    },
)
