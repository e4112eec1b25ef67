"""Models on this machine: which files exist, what they contain, where they come from."""
