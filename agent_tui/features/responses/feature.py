"""OpenAI's models in the Responses protocol; without it they are called in the older one."""

from agent_tui.feature import Feature

FEATURE = Feature("responses", wires=("agent_tui.features.responses.wire:RESPONSES",))
