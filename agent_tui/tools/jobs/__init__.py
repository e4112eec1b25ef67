"""Commands that go on in the background, for the conversation that began them."""
