"""``agent-tui completion``: scripts for shells, and the words they ask for."""
