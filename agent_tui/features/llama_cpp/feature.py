"""llama.cpp servers that the user starts: found at their ports and read by their own API."""

from agent_tui.feature import Feature

FEATURE = Feature("llama_cpp", server_kinds=("agent_tui.features.llama_cpp.server:LLAMA_CPP",))
