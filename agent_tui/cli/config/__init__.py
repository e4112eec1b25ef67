"""``agent-tui config``: the settings in force, and changing one's own."""
