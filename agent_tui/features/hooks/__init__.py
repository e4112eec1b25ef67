"""User-defined commands that run at certain moments of a conversation."""
