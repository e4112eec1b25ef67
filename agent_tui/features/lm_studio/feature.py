"""LM Studio: found at its port and read by its own API."""

from agent_tui.feature import Feature

FEATURE = Feature("lm_studio", server_kinds=("agent_tui.features.lm_studio.server:LM_STUDIO",))
