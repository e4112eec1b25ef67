"""What a reader needs to continue the work, taken from the log by code, section by section."""
