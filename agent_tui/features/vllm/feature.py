"""vLLM servers: found at their port, read and started by their own command."""

from agent_tui.feature import Feature

FEATURE = Feature("vllm", server_kinds=("agent_tui.features.vllm.server:VLLM",))
