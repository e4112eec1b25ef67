"""Command line: arguments to settings to objects to a run."""
