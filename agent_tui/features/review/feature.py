"""Changes to look at and comment on, and a helper's review of them."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "review",
    part="agent_tui.features.review.part:ReviewPart",
    brings={
        "agent_tui.commands": (
            "agent_tui.features.review.command:comment",
            "agent_tui.features.review.command:diff",
            "agent_tui.features.review.command:review",
        )
    },
)
