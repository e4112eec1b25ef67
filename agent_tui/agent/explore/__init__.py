"""Helpers that search and read in a context of their own, and answer once."""
