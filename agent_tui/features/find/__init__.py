"""The search of the chat."""
