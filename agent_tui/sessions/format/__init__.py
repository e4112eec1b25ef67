"""The session format: entries to lines and back, damaged and older files included."""
