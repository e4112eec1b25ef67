"""Printing what may hold any character, whatever the locale says."""

import sys


def write_text(text: str) -> None:
    """Write `text` to standard output as UTF-8."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
