"""Unified diffs of a file before and after a change."""

import difflib
from dataclasses import dataclass

_CONTEXT_LINES = 3
_MAX_COMPARED_LINES = 20_000
"""difflib's time grows faster than its input; beyond this the changed middle is one hunk."""


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff (empty when nothing changed) and its line counts."""

    text: str
    added: int
    removed: int

    @property
    def counts(self) -> str:
        """For one line of summary: ``+3 -1``."""
        return f"+{self.added} -{self.removed}"


def unified_diff(before: str, after: str, label: str) -> Diff:
    """The change from `before` to `after`; `label` names the file in the diff's header."""
    old, new = _lines(before), _lines(after)
    if old == new:
        return Diff("", 0, 0)
    if len(old) + len(new) <= _MAX_COMPARED_LINES:
        body = list(difflib.unified_diff(old, new, n=_CONTEXT_LINES))[2:]
    else:
        body = _one_hunk(old, new)
    added = sum(line.startswith("+") for line in body)
    removed = sum(line.startswith("-") for line in body)
    text = "".join(map(_ended, [f"--- {label}\n", f"+++ {label}\n", *body]))
    return Diff(text, added, removed)


def _lines(text: str) -> list[str]:
    """Lines with their newlines; unlike `str.splitlines`, only ``\\n`` ends one."""
    pieces = text.split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _one_hunk(old: list[str], new: list[str]) -> list[str]:
    """A diff that replaces everything between the common beginning and the common end."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    same_end = 0
    while same_end < shorter - start and old[-1 - same_end] == new[-1 - same_end]:
        same_end += 1
    old_end, new_end = len(old) - same_end, len(new) - same_end
    first = max(0, start - _CONTEXT_LINES)
    trailing = old[old_end : old_end + _CONTEXT_LINES]
    old_count = old_end + len(trailing) - first
    new_count = new_end + len(trailing) - first
    return [
        f"@@ -{first + 1},{old_count} +{first + 1},{new_count} @@\n",
        *(f" {line}" for line in old[first:start]),
        *(f"-{line}" for line in old[start:old_end]),
        *(f"+{line}" for line in new[start:new_end]),
        *(f" {line}" for line in trailing),
    ]


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
