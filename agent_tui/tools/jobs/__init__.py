"""Commands that run in the background, for the conversation that started them."""
