"""Globs with the meaning of a line in .gitignore."""

import re

from pathspec import GitIgnoreSpec


def glob_spec(glob: str) -> GitIgnoreSpec:
    """A glob with the meaning of a ``.gitignore`` line (``*.py`` at any depth), braces expanded.

    Raises:
        ValueError: It is not a valid glob, such as ``[z-a]``.
    """
    literal_start = f"\\{glob}" if glob.startswith(("!", "#")) else glob
    try:
        return GitIgnoreSpec.from_lines(_without_braces(literal_start))
    except re.error as error:
        raise ValueError(str(error)) from error


def _without_braces(glob: str, most: int = 64) -> list[str]:
    """Expand ``*.{ts,tsx}`` to ``*.ts`` and ``*.tsx``."""
    pending, plain = [glob], list[str]()
    while pending and len(plain) + len(pending) <= most:
        pattern = pending.pop(0)
        close = pattern.find("}")
        opening = pattern.rfind("{", 0, close) if close >= 0 else -1
        if opening < 0:
            plain.append(pattern)
            continue
        for choice in pattern[opening + 1 : close].split(","):
            pending.append(pattern[:opening] + choice + pattern[close + 1 :])
    return plain + pending
