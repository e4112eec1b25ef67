"""Which words changed between the removed and the added lines of a diff."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

Marks: TypeAlias = tuple[tuple[int, int], ...]
"""First and last character of each changed piece of a line, in order."""

_LEAST_ALIKE = 0.4
"""Share of their characters that two lines must have in common to be one line that changed.

Below it nearly everything would be marked, which says less than no marks.
"""

MAX_PAIRINGS = 900
"""Pairs of lines that are compared in one change (30 lines by 30).

In a larger change, lines are paired in order if there are as many new as old ones.
"""

MAX_CHARS = 8_000
_MAX_WORDS = 400
_MAX_WORD_PAIRS = 4_000
"""Of one pair of lines: what takes more comparing is marked from first to last difference."""

_WORDS = re.compile(r"\w+|\s+|.")
_PARTS = re.compile(r"[^\W_]+|\S")


def find_changed_words(
    removed: Sequence[str], added: Sequence[str]
) -> tuple[list[Marks], list[Marks]]:
    """The marks of each removed and each added line of one change.

    Lines are paired in their order, so that the paired ones are as alike as can be; the others
    have no marks, nor have lines that are the same but for their indent.
    """
    old: list[Marks] = [()] * len(removed)
    new: list[Marks] = [()] * len(added)
    if not (old and new) or (len(old) * len(new) > MAX_PAIRINGS and len(old) != len(new)):
        return old, new
    old_words = [_WORDS.findall(line[:MAX_CHARS]) for line in removed]
    new_words = [_WORDS.findall(line[:MAX_CHARS]) for line in added]
    for left, right in _pairs(old_words, new_words):
        old[left], new[right] = _compare(old_words[left], new_words[right])
    return old, new


def _pairs(old: Sequence[Sequence[str]], new: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Pairs of lines in order with the greatest sum of likeness (as in a longest subsequence)."""
    counted_old, counted_new = [_parts("".join(w)) for w in old], [_parts("".join(w)) for w in new]
    if len(old) * len(new) > MAX_PAIRINGS:
        couples = enumerate(zip(counted_old, counted_new, strict=True))
        yield from ((number, number) for number, couple in couples if _alike(*couple))
        return
    alike = [[_alike(left, right) for right in counted_new] for left in counted_old]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for left in range(len(old) - 1, -1, -1):
        for right in range(len(new) - 1, -1, -1):
            best[left][right] = max(
                best[left + 1][right],
                best[left][right + 1],
                alike[left][right] + best[left + 1][right + 1],
            )
    left = right = 0
    while left < len(old) and right < len(new):
        taken = alike[left][right]
        if taken and best[left][right] == taken + best[left + 1][right + 1]:
            yield left, right
            left, right = left + 1, right + 1
        elif best[left][right] == best[left + 1][right]:
            left += 1
        else:
            right += 1


def _parts(line: str) -> Counter[str]:
    """The number of characters of each name part and sign in a line."""
    characters: Counter[str] = Counter()
    for part in _PARTS.findall(line):
        characters[part] += len(part)
    return characters


def _alike(left: Counter[str], right: Counter[str]) -> float:
    """The share of common characters of two lines; 0 if it is too small."""
    total = left.total() + right.total()
    share = 2 * (left & right).total() / total if total else 0.0
    return share if share >= _LEAST_ALIKE else 0.0


def _compare(old: Sequence[str], new: Sequence[str]) -> tuple[Marks, Marks]:
    """The changed pieces of two lines given by their words."""
    first = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    if first is None:
        first = min(len(old), len(new))
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    old_middle, new_middle = old[first : len(old) - last], new[first : len(new) - last]
    changes = [(0, len(old_middle), 0, len(new_middle))]
    if old_middle and new_middle and _is_cheap(old_middle, new_middle):
        matcher = SequenceMatcher(None, old_middle, new_middle, autojunk=False)
        changes = [codes[1:] for codes in matcher.get_opcodes() if codes[0] != "equal"]
    return (
        _marks(old, [(first + start, first + end) for start, end, _, _ in changes]),
        _marks(new, [(first + start, first + end) for _, _, start, end in changes]),
    )


def _is_cheap(old: Sequence[str], new: Sequence[str]) -> bool:
    if max(len(old), len(new)) > _MAX_WORDS:
        return False
    counted = Counter(new)
    return sum(counted[word] for word in old) <= _MAX_WORD_PAIRS


def _marks(words: Sequence[str], changes: Sequence[tuple[int, int]]) -> Marks:
    """Runs of words as runs of characters; what only a space parts is one piece."""
    marks: list[tuple[int, int]] = []
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word))
    line = "".join(words)
    is_indent = bool(words) and words[0].isspace()
    for start, end in changes:
        if is_indent and start == 0:
            start = 1
        if start >= end:
            continue
        begin = offsets[start]
        if marks and line[marks[-1][1] : begin].isspace():
            begin = marks.pop()[0]
        marks.append((begin, offsets[end]))
    return tuple(marks)
