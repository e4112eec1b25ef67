"""Settings to see and change: a screen, a command and a subcommand."""
