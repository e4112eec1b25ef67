"""Tools and commands from files in the user's configuration folder."""
