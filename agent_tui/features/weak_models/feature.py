"""Calls that models write as text."""

from agent_tui.feature import Feature

FEATURE = Feature("weak_models", adapters=("agent_tui.features.weak_models.adapter:TextTools",))
