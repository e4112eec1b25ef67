"""A provider that replies from a script, and the demo written with it."""
