"""Ollama: found at its port or where ``OLLAMA_HOST`` says, and read by its own API."""

from agent_tui.feature import Feature

FEATURE = Feature("ollama", server_kinds=("agent_tui.features.ollama.server:OLLAMA",))
