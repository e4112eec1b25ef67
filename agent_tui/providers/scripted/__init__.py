"""A provider that replies from a script, and the demo that uses it."""
