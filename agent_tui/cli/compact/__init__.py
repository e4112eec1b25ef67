"""``agent-tui compact``: a session file made smaller."""
