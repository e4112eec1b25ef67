"""The subcommand that checks and lists permission rules."""
