"""``agent-tui models``: the models at hand, and those on this machine."""
