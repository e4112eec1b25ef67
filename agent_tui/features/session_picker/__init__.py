"""The screen to pick a session from."""
