"""The tool that reads pages of the web."""

from agent_tui.feature import Feature

FEATURE = Feature("web", tools=("agent_tui.features.web.tool:make_tool",))
