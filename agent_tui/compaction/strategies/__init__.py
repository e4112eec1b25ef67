"""The ways to make a context smaller; those without a summary make a plan for every message."""
