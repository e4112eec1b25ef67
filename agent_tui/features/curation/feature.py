"""The model is asked what a compaction keeps; without it, code decides alone."""

from agent_tui.feature import Feature

FEATURE = Feature("curation", curator="agent_tui.features.curation.curator:ModelCurator")
