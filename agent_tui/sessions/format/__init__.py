"""The session format: entries to lines and back, including damaged and older files."""
