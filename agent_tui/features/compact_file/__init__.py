"""The subcommand that compacts a session in a file."""
