"""The rules by which entries change what the model sees."""
