"""The widgets above the prompt, and the blocks made from entries and events."""
