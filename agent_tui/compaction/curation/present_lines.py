"""Finds lines that were seen earlier where they are now, and the ends of what a range began."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import Match, SequenceMatcher
from typing import TypeAlias

from agent_tui.compaction.sections.file_states import FileState, ReadFile

Run: TypeAlias = tuple[int, Sequence[str]]
"""Lines without a gap, after the number of the first one (0 if unknown)."""

_LEAST_LINES = 3
_TELLING_CHARS = 4
_LEAST_SHARED = 0.5
"""If a place shares a smaller part of its lines with the view, it is a different place."""

_MOST_GROWTH, _MOST_ADDED_LINES = 2, 40
"""If more lines than this were added between lines of a view, they are now two places."""

_MOST_EXTENDED_LINES = 20
_ITEM = re.compile(r"(?P<indent>\s*)(?P<mark>(?:[-*+•]|\d+[.)])\s)|#{1,6}\s|\*\*[^*\n]+\*\*:?\s*$")
"""The beginning of a list item, or a heading."""


def lines_now(view: Run, first: int, last: int, known: Sequence[Run]) -> list[Run]:
    """Lines `first` to `last` of a view of a file, as they are in the file now, with their numbers.

    Lines that were only indented or wrapped since count as the same.

    Args:
        view: The lines as they were seen.
        first: Number of a line in it.
        last: Number of the last line.
        known: The known lines of the file now.

    Returns: Several runs if much was inserted between the lines; none if they are not found.
    """
    seen_from, seen = view
    a, b = first - seen_from, last - seen_from + 1
    wanted, with_next = list(seen[a:b]), list(seen[a : b + 1])
    for start, lines in known:
        if start and (at := _find(with_next, lines, near=first - start)) >= 0:
            return [(start + at, tuple(wanted))]
    viewed = [line.strip() for line in seen]
    for start, lines in known:
        if not start:
            continue
        now = [line.strip() for line in lines]
        matcher = SequenceMatcher(_says_little, viewed, now, autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size]
        same = [
            (max(m.a, a) + m.b - m.a, min(m.a + m.size, b) + m.b - m.a)
            for m in blocks
            if m.a < b and m.a + m.size > a
        ]
        low, high = _map_line(a, blocks), _map_line(b - 1, blocks, is_end=True) + 1
        behind = _map_line(b, blocks) if b < len(viewed) else high
        if high <= behind <= high + _MOST_ADDED_LINES:
            high = behind  # including lines inserted after them
        is_one = low < high <= low + len(wanted) * _MOST_GROWTH + _MOST_ADDED_LINES
        shared = sum(end - at for at, end in same) / len(wanted)
        if is_one:  # the view tells the place even if most of its lines were rewritten
            shared = max(shared, sum(m.size for m in blocks) / len(viewed))
        places = [(low, high)] if is_one else _places([(low, low), *same, (high, high)])
        if places and shared >= _LEAST_SHARED:
            return [(start + at, tuple(lines[at:end])) for at, end in places]
    return []


def present_runs(file: FileState, on_disk: ReadFile | None) -> list[Run]:
    """The lines of `file` that the log shows or a script changed, as they are now, in order.

    Args:
        file: The file as the log has it.
        on_disk: Reads the file as it is now; None if files are unavailable.
    """
    text = on_disk(file.path) if on_disk is not None else None
    if text is None:
        return list(file.runs)
    known: list[Run] = [(1, text.removesuffix("\n").split("\n"))]
    if file.is_changed_by_text:
        return known
    found: dict[int, str] = {}
    for first, lines in file.runs:
        view = (max(first, 1), lines)
        for start, run in lines_now(view, view[0], view[0] + len(lines) - 1, known):
            found.update(enumerate(run, start))
    return list(runs_of(found))


def runs_of(lines: Mapping[int, str]) -> Iterator[Run]:
    """The `lines`, by number, as runs."""
    run: list[str] = []
    first = 0
    for number in sorted(lines):
        if run and number != first + len(run):
            yield first, tuple(run)
            run = []
        first = first if run else number
        run.append(lines[number])
    if run:
        yield first, tuple(run)


def end_of_paragraph(lines: Sequence[str], first: int, last: int) -> int:
    """The index of the last line of the paragraph or list item that line `last` belongs to.

    A heading belongs to the text below it. It is `last` itself if that line is blank, or if the
    end is further away than `first`, the beginning of a range, or than `_MOST_EXTENDED_LINES`.
    """
    if not lines[last].strip():
        return last
    start = last
    while start and not _ITEM.match(lines[start]) and lines[start - 1].strip():
        start -= 1
    item = _ITEM.match(lines[start])
    at = last + 1
    if item is not None and start == last:
        below = next((i for i in range(at, len(lines)) if lines[i].strip()), at)
        if below < len(lines) and (not item["mark"] or _indent(lines[below]) > _indent(item[0])):
            at = below
    while at < len(lines) and lines[at].strip() and not _begins_another(lines[at], item):
        at += 1
    return _if_near(at - 1, first, last)


def end_of_block(lines: Sequence[str], first: int, last: int) -> int:
    """The index of the last line of the block of code that begins in a range and goes on behind it.

    It is `last` itself if no block goes on, if a blank line comes before its end, or if that is
    further away than `first`, the beginning of the range, or than `_MOST_EXTENDED_LINES`.
    """
    depth = min((_indent(line) for line in lines[first : last + 1] if line.strip()), default=0)
    at = last + 1
    while at < len(lines) and lines[at].strip() and _indent(lines[at]) > depth:
        at += 1
    if at < len(lines) and not lines[at].strip():
        below = next((line for line in lines[at:] if line.strip()), "")
        at = last + 1 if _indent(below) > depth or _is_closing(below, depth) else at
    elif at < len(lines) and _is_closing(lines[at], depth):
        is_open = at > last + 1 or _indent(lines[last]) > depth
        at += is_open
    return _if_near(at - 1, first, last)


def is_inside_block(below: str, lines: Sequence[str], *, is_parted: bool) -> bool:
    """Whether the line `below` belongs to a block of code that begins in `lines` before it.

    Not if it `is_parted` from them by a blank line and less indented: then the next block begins.
    """
    depth = min((_indent(line) for line in lines if line.strip()), default=0)
    last = _indent(next((line for line in reversed(lines) if line.strip()), ""))
    is_open = last > depth
    if is_parted and last > _indent(below):
        return False
    return _indent(below) > depth or (is_open and _is_closing(below, depth))


def _is_closing(line: str, depth: int) -> bool:
    """Whether `line`, with only brackets and other marks, closes a block of that depth."""
    return _indent(line) == depth and bool(line.strip()) and not re.search(r"\w", line)


def _if_near(end: int, first: int, last: int) -> int:
    return end if end - last <= min(_MOST_EXTENDED_LINES, last - first + 1) else last


def _begins_another(line: str, item: re.Match[str] | None) -> bool:
    """Whether `line` is a heading, or an item that is not below `item` (None outside of lists)."""
    other = _ITEM.match(line)
    if other is None or not other["mark"]:
        return other is not None
    return item is not None and bool(item["mark"]) and _indent(line) <= _indent(item[0])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _says_little(line: str) -> bool:
    """Whether `line` is alike everywhere ("", "}", "end"): it tells no place, and costs time."""
    return len(line) < _TELLING_CHARS


def _places(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge nearby `spans` in order; drop single lines, which prove nothing."""
    places: list[tuple[int, int]] = []
    for at, end in spans:
        if places and at - places[-1][1] <= _MOST_ADDED_LINES:
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        else:
            places.append((at, end))
    large = [(at, end) for at, end in places if end - at >= _LEAST_LINES]
    return large or [(at, end) for at, end in places if end > at]


def _find(wanted: Sequence[str], lines: Sequence[str], near: int) -> int:
    """The index of `wanted` as a whole in `lines`, nearest to `near`; -1 if it is not there."""
    count = len(wanted)
    if list(lines[max(near, 0) : max(near, 0) + count]) == wanted:
        return max(near, 0)
    places = [
        at
        for at in range(len(lines) - count + 1)
        if lines[at] == wanted[0] and list(lines[at : at + count]) == wanted
    ]
    return min(places, key=lambda at: abs(at - near), default=-1)


def _map_line(at: int, blocks: Sequence[Match], *, is_end: bool = False) -> int:
    """The present index of line `at` of a view; for a deleted line, the end of its gap."""
    before = -1
    for block in blocks:
        if block.a <= at < block.a + block.size:
            return block.b + at - block.a
        if block.a > at:
            return block.b - 1 if is_end else before + 1
        before = block.b + block.size - 1
    return before if is_end else before + 1
