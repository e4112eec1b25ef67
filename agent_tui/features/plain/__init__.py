"""The linear front end: every line is written once, for screen readers, logs and dumb terminals."""
