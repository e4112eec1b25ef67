"""What the model gets besides the messages: system prompt, instruction files, mentions."""
