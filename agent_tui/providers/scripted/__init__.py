"""A provider that replies from a script."""
