"""Printing and JSON-lines front end over the same events as the screen."""
