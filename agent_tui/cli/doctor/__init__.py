"""``agent-tui doctor``: what works here, and what to do about the rest."""
