"""Rules that the user's repeated corrections suggest: found, offered once, and answered."""
