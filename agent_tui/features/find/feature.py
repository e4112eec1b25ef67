"""Text in the chat to search for: ``/find``."""

from agent_tui.feature import Feature

FEATURE = Feature("find", brings={"agent_tui.commands": ("agent_tui.features.find.command:find",)})
