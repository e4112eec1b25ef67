"""``agent-tui compact``: compacts a session file."""
