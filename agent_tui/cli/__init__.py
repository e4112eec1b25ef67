"""The command line: turns arguments into settings, objects and a run."""
