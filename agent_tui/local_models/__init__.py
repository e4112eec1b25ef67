"""Models on this machine: which files there are, what they are, where they come from."""
