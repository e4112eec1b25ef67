"""The chat format that OpenAI began: its messages, and what replies in it have in common."""
