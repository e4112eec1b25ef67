"""Who asked for lines of a file and why."""
