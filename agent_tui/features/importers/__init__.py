"""Sessions of other agents: Claude Code, Codex, Gemini, opencode and Kimi."""
