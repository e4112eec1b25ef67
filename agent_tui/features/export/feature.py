"""Sessions as trajectories of Harbor."""

from agent_tui.feature import Feature

FEATURE = Feature("export", brings={"agent_tui.exports": ("agent_tui.features.export.atif:ATIF",)})
