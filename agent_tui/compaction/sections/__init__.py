"""What a reader needs who goes on with the work, taken from the log by code, section by section."""
