"""The `apply_patch` tool. Without it, every model changes files with `edit`."""

from agent_tui.feature import Feature

FEATURE = Feature("apply_patch", tools=("agent_tui.features.apply_patch.tool:make_apply_patch",))
