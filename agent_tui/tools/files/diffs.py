"""Unified diffs of a file before and after a change."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice

_CONTEXT_LINES = 3
_MAX_COMPARED_LINES = 20_000
"""difflib takes more than linear time; beyond this size the changed middle is one hunk."""
_MOST_RANGES_NAMED = 10
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff (empty if nothing changed) and its line counts."""

    text: str
    added: int
    removed: int

    @property
    def counts(self) -> str:
        """The counts for a one-line summary: ``+3 -1``."""
        return f"+{self.added} -{self.removed}"

    @property
    def lines(self) -> str:
        """Which lines of the new text differ, the first few: ``12-15, 40``.

        For removed lines, the line that is now in their place.
        """
        ranges = list(islice(_find_changed_ranges(self.text), _MOST_RANGES_NAMED + 1))
        shown = [f"{a}-{b}" if a < b else f"{a}" for a, b in ranges[:_MOST_RANGES_NAMED]]
        return ", ".join(shown) + (", ..." if len(ranges) > _MOST_RANGES_NAMED else "")


def unified_diff(before: str, after: str, label: str) -> Diff:
    """The change from `before` to `after`; `label` names the file in the diff's header."""
    if before == after:
        return Diff("", 0, 0)
    if before.count("\n") + after.count("\n") <= _MAX_COMPARED_LINES:
        body = list(difflib.unified_diff(_lines(before), _lines(after), n=_CONTEXT_LINES))[2:]
    else:
        body = _one_hunk(*_find_changed_part(before, after))
    added = sum(line.startswith("+") for line in body)
    removed = sum(line.startswith("-") for line in body)
    text = "".join(map(_end_line, [f"--- {label}\n", f"+++ {label}\n", *body]))
    return Diff(text, added, removed)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The part of a unified diff about one file, named as in its header."""

    name: str
    text: str


def diffs_by_file(diff: str) -> tuple[FileDiff, ...]:
    """Split a unified diff of several files into one per file; empty for any other text."""
    parts: list[tuple[str, list[str]]] = []
    for hunk, lines in _stretches(diff):
        if hunk is None and lines[0].startswith("--- "):
            parts.append((lines[0].removeprefix("--- ").rstrip("\n"), []))
        if parts:
            parts[-1][1].extend(lines)
    return tuple(FileDiff(name, "".join(lines)) for name, lines in parts)


def line_counts(diff: str) -> tuple[int, int]:
    """How many lines a unified diff adds, and how many it removes."""
    stretches = [lines for hunk, lines in _stretches(diff) if hunk is not None]
    signs = [line[0] for lines in stretches for line in lines]
    return signs.count("+"), signs.count("-")


def creates_file(diff: str) -> bool:
    """Whether the diff of one file begins with nothing: there was no file, or an empty one."""
    hunks = _hunks(diff)
    return len(hunks) == 1 and not hunks[0].old and hunks[0].old_start == 0


def before_diff(after: str, diff: str, *, is_exact: bool = False) -> str | None:
    """The text before the change `diff` produced `after`.

    Args:
        after: The text.
        diff: The change.
        is_exact: Whether hunks that are not at their lines must have just one place. Else they are
            found nearest to their lines, if the text above them has grown or shrunk since.

    Returns:
        None if the lines of a hunk have changed.
    """
    hunks = [(h.new_start, h.new, h.old) for h in _hunks(diff)]
    return _replace_hunks(after, hunks, is_exact=is_exact)


def after_diff(before: str, diff: str, *, is_exact: bool = False) -> str | None:
    """The result of applying `diff` to a text; None if it does not apply. See `before_diff`."""
    hunks = [(h.old_start, h.old, h.new) for h in _hunks(diff)]
    return _replace_hunks(before, hunks, is_exact=is_exact)


@dataclass(slots=True)
class _Hunk:
    """Lines before and after; the starts are the indices of the first lines."""

    old_start: int
    new_start: int
    old: list[str]
    new: list[str]


def _stretches(diff: str) -> Iterator[tuple[_Hunk | None, list[str]]]:
    """The hunks of a diff with their raw lines; None for each header line."""
    lines = _lines(diff)
    at = 0
    while at < len(lines):
        head = _HUNK.match(lines[at])
        if head is None:
            yield None, [lines[at]]
            at += 1
            continue
        first, old_left, new_left = at, int(head[2] or 1), int(head[4] or 1)
        hunk = _Hunk(int(head[1]) - (old_left > 0), int(head[3]) - (new_left > 0), [], [])
        at += 1
        while at < len(lines) and (old_left > 0 or new_left > 0 or lines[at].startswith("\\")):
            sign, text = lines[at][0], lines[at][1:]
            if sign == "\\":
                _unend(hunk, lines[at - 1][0])
            if sign in " -":
                hunk.old.append(text)
                old_left -= 1
            if sign in " +":
                hunk.new.append(text)
                new_left -= 1
            at += 1
        yield hunk, lines[first:at]


def _find_changed_ranges(diff: str) -> Iterator[tuple[int, int]]:
    """The first and last number of each run of changed lines, counted after the change."""
    for hunk, lines in _stretches(diff):
        number = hunk.new_start + 1 if hunk is not None else 0
        signs = (line[0] for line in lines[1:] if not line.startswith("\\"))
        for is_same, run in groupby(signs, lambda sign: sign == " "):
            present = sum(sign != "-" for sign in run)
            if not is_same:
                yield number, number + max(present, 1) - 1
            number += present


def _unend(hunk: _Hunk, sign: str) -> None:
    """Remove the newline of the preceding line, which has `sign`."""
    for lines in (*([hunk.old] if sign in " -" else []), *([hunk.new] if sign in " +" else [])):
        lines[-1] = lines[-1].removesuffix("\n")


def _hunks(diff: str) -> list[_Hunk]:
    return [hunk for hunk, _ in _stretches(diff) if hunk is not None]


def _replace_hunks(
    text: str, hunks: list[tuple[int, list[str], list[str]]], *, is_exact: bool
) -> str | None:
    """`text` with the lines of each hunk replaced; hunks are (start, old lines, new lines)."""
    lines = _lines(text)
    end = len(lines)
    for start, there, instead in reversed(hunks):
        place = (
            _only_place(there, lines[:end], start) if is_exact else _place_of(there, lines, start)
        )
        if place is None:
            return None
        end = place
        lines[place : place + len(there)] = instead
    return "".join(lines)


def _place_of(wanted: list[str], lines: list[str], start: int) -> int | None:
    """The index of `wanted` in `lines` nearest to `start`; None if it is not there."""
    last = len(lines) - len(wanted)
    places = sorted(range(last + 1), key=lambda place: abs(place - start))
    return next((p for p in places if lines[p : p + len(wanted)] == wanted), None)


def _only_place(wanted: list[str], lines: list[str], start: int) -> int | None:
    """`start` if `wanted` is there in `lines`, else its only place; None if there is none."""
    if not wanted:  # the diff of an empty file
        return None if lines else 0
    if lines[start : start + len(wanted)] == wanted:
        return start
    last = len(lines) - len(wanted)
    places = [p for p in range(last + 1) if lines[p : p + len(wanted)] == wanted]
    return places[0] if len(places) == 1 else None


def _lines(text: str) -> list[str]:
    """Lines with their newlines; unlike `str.splitlines`, only ``\\n`` ends one."""
    pieces = text.split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _find_changed_part(before: str, after: str) -> tuple[list[str], list[str], int]:
    """The differing lines of both with their context, and how many lines are above.

    The common part is not split into lines: for a large file that takes ten times its size.
    """
    from rapidfuzz.distance import Postfix, Prefix  # 4 MB, and only changes of files need it

    start = Prefix.similarity(before, after)
    end = min(Postfix.similarity(before, after), min(len(before), len(after)) - start)
    for _ in range(_CONTEXT_LINES + 1):
        start = before.rfind("\n", 0, max(start - 1, 0)) + 1
    for _ in range(_CONTEXT_LINES + 2):
        newline = before.find("\n", len(before) - end)
        end = len(before) - newline - 1 if newline >= 0 else 0
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    return _lines(old), _lines(new), before.count("\n", 0, start)


def _one_hunk(old: list[str], new: list[str], above: int) -> list[str]:
    """A diff that replaces everything between the common start and the common end.

    `above` is how many lines are above both.
    """
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
        f"@@ -{above + first + 1},{old_count} +{above + first + 1},{new_count} @@\n",
        *(f" {line}" for line in old[first:start]),
        *(f"-{line}" for line in old[start:old_end]),
        *(f"+{line}" for line in new[start:new_end]),
        *(f" {line}" for line in trailing),
    ]


def _end_line(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
