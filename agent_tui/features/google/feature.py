"""Gemini, and Gemini and Claude on Vertex AI, in their own protocols."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "google",
    wires=(
        "agent_tui.features.google.gemini:GEMINI",
        "agent_tui.features.google.vertex:VERTEX_GEMINI",
        "agent_tui.features.google.vertex:VERTEX_CLAUDE",
    ),
)
