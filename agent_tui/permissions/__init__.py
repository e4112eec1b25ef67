"""May this run: rules, trusted folders, and what a shell command would do."""
