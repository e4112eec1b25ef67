"""Models for which we have no wire, through litellm in a separate process."""

from agent_tui.feature import Feature

FEATURE = Feature("litellm", caller="agent_tui.features.litellm.process:LiteLlmProcess")
