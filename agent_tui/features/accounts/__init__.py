"""Accounts that are used instead of a key: signing in to them, and storing their tokens."""
