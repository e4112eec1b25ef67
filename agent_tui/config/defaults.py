"""Default values that are needed where no settings are."""

from typing import Final

MOST_PROCESSES: Final = 1_000
"""Processes a command may have at a time."""
