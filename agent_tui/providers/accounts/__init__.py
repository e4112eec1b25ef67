"""Accounts that stand for a key: signing in to them, and where what that gave is kept."""
