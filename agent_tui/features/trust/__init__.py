"""The subcommand about trusted folders."""
