"""Models on Amazon Bedrock in its own protocol."""

from agent_tui.feature import Feature

FEATURE = Feature("bedrock", wires=("agent_tui.features.bedrock.wire:BEDROCK",))
