"""Ways to compact besides the tiers."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "strategies",
    brings={
        "agent_tui.strategies": (
            "agent_tui.features.strategies.hybrid:hybrid",
            "agent_tui.features.strategies.agent:agent",
        )
    },
)
