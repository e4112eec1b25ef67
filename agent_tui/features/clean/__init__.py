"""``agent-tui clean``: lists what the program stored on this machine, and removes some of it."""
