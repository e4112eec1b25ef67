"""Completing paths that are not below the project: from the root, from home, from above."""

import os
from itertools import islice
from pathlib import Path

from agent_tui.ui.prompt.fuzzy import fuzzy_match
from agent_tui.ui.prompt.path_ranking import is_writable

_MOST_ENTRIES = 20_000


def leads_outside(typed: str) -> bool:
    """Whether `typed` begins a path that no list of the project's files has."""
    return typed.startswith(("/", "~/", "../")) or typed in ("~", "..")


def entries_outside(typed: str, cwd: Path, limit: int) -> tuple[str, ...]:
    """What is in the folder that `typed` names and fits its last part; folders end with a slash.

    Blocking. Nothing where the folder cannot be read. Names with a dot first are there only when
    the last part begins with one.
    """
    if typed in ("~", ".."):
        return (typed + "/",)
    folder, _, last = typed.rpartition("/")
    try:
        with os.scandir(cwd / Path(f"{folder}/").expanduser()) as entries:
            names = [
                entry.name + ("/" if entry.is_dir() else "")
                for entry in islice(entries, _MOST_ENTRIES)
                if is_writable(entry.name) and entry.name.startswith(".") <= last.startswith(".")
            ]
    except (OSError, RuntimeError, ValueError):  # not there, ~ of nobody known, NUL
        return ()
    matches = [(match, name) for name in names if (match := fuzzy_match(last, name)) is not None]
    matches.sort(key=lambda found: (-found[0].score, found[1]))
    return tuple(f"{folder}/{name}" for _, name in matches[:limit])
