"""Reading a shell command without running it."""
