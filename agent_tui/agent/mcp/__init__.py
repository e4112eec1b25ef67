"""The MCP servers that person and project name, and the question before one is started."""
