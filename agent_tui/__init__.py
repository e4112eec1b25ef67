"""A terminal coding agent whose context never runs out and never forgets."""

__version__ = "0.1.0"
