"""Sessions that clones of a project share: ``agent-tui sessions share``, ``push``, ``pull``."""

from agent_tui.feature import Feature

FEATURE = Feature("sharing", verbs={"sessions": ("agent_tui.features.sharing.parser:add_sharing",)})
