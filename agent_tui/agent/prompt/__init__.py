"""What the model is told before and beside the messages: system prompt, files, mentions."""
