"""The terminal beneath the screen: running in it, its input, title, mouse, clipboard."""
