"""``agent-tui doctor``: reports what works on this machine, and how to fix the rest."""
