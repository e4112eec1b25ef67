"""Carrying out compactions of a conversation, by hand, when it is full, and ahead of time."""
