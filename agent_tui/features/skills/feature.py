"""Skills to list, and to drop from the context: ``/skills``."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "skills", brings={"agent_tui.commands": ("agent_tui.features.skills.command:skills",)}
)
