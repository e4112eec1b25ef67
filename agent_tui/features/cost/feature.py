"""What a session has cost, and what broke the provider's cache: ``/cost``."""

from agent_tui.feature import Feature

FEATURE = Feature("cost", brings={"agent_tui.commands": ("agent_tui.features.cost.command:cost",)})
