"""``agent-tui models``: the available models, and those on this machine."""
