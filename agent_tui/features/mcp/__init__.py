"""Tools of MCP servers: separate programs that offer the model more tools."""
