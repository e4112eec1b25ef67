"""Processes that tools start: the keeper that ends them, shell commands, environments."""
