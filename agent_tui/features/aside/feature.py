"""Side questions, which stay out of the conversation: ``/btw``."""

from agent_tui.feature import Feature

FEATURE = Feature("aside", brings={"agent_tui.commands": ("agent_tui.features.aside.command:btw",)})
