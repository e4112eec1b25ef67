"""Sessions as documents, web pages and trajectories of Harbor, and the command for it."""

from agent_tui.feature import Feature

_HERE = "agent_tui.features.export"
FEATURE = Feature(
    "export",
    brings={
        "agent_tui.exports": (
            f"{_HERE}.documents:MARKDOWN",
            f"{_HERE}.documents:HTML",
            f"{_HERE}.atif:ATIF",
        ),
        "agent_tui.commands": (f"{_HERE}.command:export",),
    },
)
