"""What stands above the prompt: its widgets, and the blocks made of entries and events."""
