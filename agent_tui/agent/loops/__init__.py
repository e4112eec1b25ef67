"""Loops, and the scopes of a conversation that are summed up when they end."""
