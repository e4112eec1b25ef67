"""OpenAI's chat format: its messages, and what its replies have in common."""
