"""One turn: the user's message, then replies and their tool calls until the model is done."""
