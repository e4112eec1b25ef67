"""Changes of files in words that can be followed by ear."""

import re
from collections.abc import Iterator

from agent_tui.commands.core.short_words import counted
from agent_tui.safe_text import safe_text

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def diff_words(diff: str) -> list[str]:
    """A unified diff as lines: the file, how much changes, then each line that does.

    ``Line 6 added:`` counts in the new file, ``removed`` in the old one. Lines that stay are
    left out, anything else that the diff holds is not.
    """
    changes = list(_changes(diff))
    added = sum(label.endswith(" added:") for label, _ in changes)
    removed = sum(label.endswith(" removed:") for label, _ in changes)
    counts = f"{counted(added, 'line')} added, {counted(removed, 'line')} removed."
    files = [text for label, text in changes if label == "File:"]
    if len(files) == 1:
        changes = [change for change in changes if change[0] != "File:"]
        counts = f"{_shown(files[0])}: {counts}"
    return [counts, *(f"{label} {_shown(text)}" for label, text in changes)]


def _changes(diff: str) -> Iterator[tuple[str, str]]:
    """What changes, each as a label and a text."""
    old = new = old_end = new_end = 0
    old_name = ""
    for line in diff.removesuffix("\n").split("\n"):
        mark, text = line[:1], line[1:]
        if mark == "\\":
            yield "Note:", text.strip()
        elif old < old_end or new < new_end:
            if mark == "+":
                yield f"Line {new} added:", text
            elif mark == "-":
                yield f"Line {old} removed:", text
            old, new = old + (mark != "+"), new + (mark != "-")
        elif (match := _HUNK.match(line)) is not None:
            old, new = int(match[1]), int(match[3])
            old_end, new_end = old + int(match[2] or 1), new + int(match[4] or 1)
        elif line.startswith("--- "):
            old_name = line[4:]
        elif line.startswith("+++ "):
            name = line[4:]
            yield "File:", name if name == old_name else f"{old_name} renamed to {name}"
        elif line:
            yield "Also:", line


def _shown(text: str) -> str:
    return safe_text(text, keep_newlines=False)
