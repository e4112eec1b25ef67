"""The question whether a tool call may run."""
