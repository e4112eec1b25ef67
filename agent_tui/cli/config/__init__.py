"""``agent-tui config``: shows the settings in force and changes the user's own."""
