"""Tools of MCP servers: programs beside ours that offer the model more to call."""
