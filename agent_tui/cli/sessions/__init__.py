"""``agent-tui sessions``: earlier conversations."""
