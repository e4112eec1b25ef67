"""``agent-tui sessions``: works with earlier conversations."""
