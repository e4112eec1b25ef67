"""Merges two changes to one text, line by line, as ``git merge`` does. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

_MOST_LINES: Final = 20_000
"""difflib takes more than linear time; larger texts are merged only if one side is unchanged."""


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines `start` to `end` of the base become `lines`."""

    start: int
    end: int
    lines: tuple[bytes, ...]


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """`base` with the changes of both sides; None if they conflict.

    Changes conflict if they touch the same or adjacent lines and differ.
    """
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    lines = base.splitlines(keepends=True)
    sides = [text.splitlines(keepends=True) for text in (ours, theirs)]
    if sum(map(len, (lines, *sides))) > _MOST_LINES:
        return None
    hunks = [_hunks(lines, side) for side in sides]
    if any(_clash(one, other) for one in hunks[0] for other in hunks[1]):
        return None
    merged: list[bytes] = []
    at = 0
    for hunk in sorted({*hunks[0], *hunks[1]}, key=lambda hunk: (hunk.start, hunk.end)):
        merged += [*lines[at : hunk.start], *hunk.lines]
        at = hunk.end
    return b"".join([*merged, *lines[at:]])


def _hunks(base: Sequence[bytes], changed: Sequence[bytes]) -> list[_Hunk]:
    matcher = SequenceMatcher(None, base, changed, autojunk=False)
    return [
        _Hunk(start, end, tuple(changed[first:last]))
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]


def _clash(one: _Hunk, other: _Hunk) -> bool:
    return one != other and one.start <= other.end and other.start <= one.end
