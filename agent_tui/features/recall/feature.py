"""Originals that the context no longer contains: a tool, and a hint of earlier work."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "recall",
    tools=("agent_tui.features.recall.tool:make_tool",),
    settings="agent_tui.features.recall.settings:RecallSettings",
    part="agent_tui.features.recall.part:RecallPart",
)
