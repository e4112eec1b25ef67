"""Searches of the web, by the model's provider or a search server of the user's."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "web_search",
    settings="agent_tui.features.web_search.settings:SearchSection",
    part="agent_tui.features.web_search.part:WebSearchPart",
    tools=("agent_tui.features.web_search.tool:make_tool",),
)
