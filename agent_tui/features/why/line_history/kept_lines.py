"""Which lines of a text were there before a change, as a difference of the two texts tells."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import not_

_MOST_COMPARED = 250_000
"""Pairs of lines compared within one gap, a few hundredths of a second; a gap with more has no
certain answer."""

_MOST_SLID = 100
"""Lines by which a block is moved at most, as git does (``INDENT_HEURISTIC_MAX_SLIDING``)."""

_TAB_WIDTH = 8


@dataclass(frozen=True, slots=True)
class LineSources:
    """Where the lines after a change come from.

    Attributes:
        kept: For each line, the index of the earlier line that it is; None for an added one.
        possible: Of added lines, by index, those in too long a difference: the indices of earlier
            lines that they may be instead.
    """

    kept: Sequence[int | None]
    possible: Mapping[int, Sequence[int]]


def lines_of(text: str) -> list[str]:
    r"""The lines of `text` without their ends; only ``\n`` ends one."""
    return text.removesuffix("\n").split("\n") if text else []


def sources_of(before: Sequence[str], after: Sequence[str]) -> LineSources:
    """The sources of each line in `after`, a change of `before`, by a shortest difference.

    Lines that occur once in both are fixed points, as in a patience difference. Of equal lines,
    those are new that belong to a block of added lines; a block that could be at several places is
    at the one where a reader would cut the text (`_slide`). Moved lines are removed and added. So
    `git blame` answers, too.
    """
    head, tail = _equal_ends(before, after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    pairs, is_whole = _match(old, new)
    removed = [False] * head + [True] * len(old) + [False] * tail
    added = [False] * head + [True] * len(new) + [False] * tail
    for at_old, at_new in pairs:
        removed[head + at_old] = added[head + at_new] = False
    _slide(before, removed)
    _slide(after, added)
    kept_lines = compress(range(len(before)), map(not_, removed))
    kept = [None if is_added else next(kept_lines) for is_added in added]
    if is_whole:
        return LineSources(kept, {})
    places: dict[str, list[int]] = {}
    for at in compress(range(len(before)), removed):
        places.setdefault(before[at], []).append(at)
    doubtful = (at for at in compress(range(len(after)), added) if after[at] in places)
    return LineSources(kept, {at: places[after[at]] for at in doubtful})


def _match(before: Sequence[str], after: Sequence[str]) -> tuple[list[tuple[int, int]], bool]:
    """The places, before and after, of kept lines, and whether every gap was compared."""
    found: list[tuple[int, int]] = []
    is_whole = True
    waiting = [(0, len(before), 0, len(after))]
    while waiting:
        old_start, old_end, new_start, new_end = waiting.pop()
        old, new = before[old_start:old_end], after[new_start:new_end]
        head, tail = _equal_ends(old, new)
        ends = [(at, at) for at in range(head)]
        ends += [(len(old) - at, len(new) - at) for at in range(1, tail + 1)]
        found += [(old_start + at_old, new_start + at_new) for at_old, at_new in ends]
        old_start, new_start = old_start + head, new_start + head
        old, new = old[head : len(old) - tail], new[head : len(new) - tail]
        if not old or not new:
            continue
        fixed = _fixed(old, new)
        if not fixed:
            common = _longest_common(old, new)
            found += [(old_start + at_old, new_start + at_new) for at_old, at_new in common or ()]
            is_whole = is_whole and common is not None
            continue
        last_old = last_new = -1
        for at_old, at_new in (*fixed, (len(old), len(new))):
            if at_new < len(new):
                found.append((old_start + at_old, new_start + at_new))
            gap_of_old = (old_start + last_old + 1, old_start + at_old)
            waiting.append((*gap_of_old, new_start + last_new + 1, new_start + at_new))
            last_old, last_new = at_old, at_new
    return found, is_whole


def _equal_ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many of the first lines are equal, and of the last ones behind them."""
    head = count_equal(one, other)
    return head, count_equal(one[head:][::-1], other[head:][::-1])


def count_equal(one: Sequence[str], other: Sequence[str]) -> int:
    """How many of the first lines are equal."""
    pairs = enumerate(zip(one, other, strict=False))
    differs = (at for at, (left, right) in pairs if left != right)
    return next(differs, min(len(one), len(other)))


def _fixed(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The places, before and after, of lines that occur once in both and were not moved."""
    there, now = Counter(old), Counter(new)
    place = {line: at for at, line in enumerate(new)}
    pairs = [
        (at, place[line])
        for at, line in enumerate(old)
        if there[line] == 1 and now.get(line, 0) == 1
    ]
    return _in_every_longest_rise(pairs)


def _in_every_longest_rise(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of `pairs` that every longest sequence with rising second numbers contains."""
    up_to = _rise_lengths([second for _, second in pairs])
    onward = _rise_lengths([-second for _, second in reversed(pairs)])[::-1]
    longest = max(up_to, default=0)
    full = [at for at in range(len(pairs)) if up_to[at] + onward[at] - 1 == longest]
    alike = Counter(up_to[at] for at in full)
    return [pairs[at] for at in full if alike[up_to[at]] == 1]


def _rise_lengths(numbers: Sequence[int]) -> list[int]:
    """The length of the longest rising sequence that ends with each number."""
    ends: list[int] = []
    lengths: list[int] = []
    for number in numbers:
        at = bisect_left(ends, number)
        ends[at : at + 1] = [number]
        lengths.append(at + 1)
    return lengths


def _longest_common(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]] | None:
    """The places of a longest common subsequence, the earliest in `new`; None if too long.

    Lines that are in only one of the two cannot be in it and are not compared.
    """
    there, now = set(old), set(new)
    olds = [at for at, line in enumerate(old) if line in now]
    news = [at for at, line in enumerate(new) if line in there]
    if len(olds) * len(news) > _MOST_COMPARED:
        return None
    lengths = [[0] * (len(news) + 1)]
    for at_old in reversed(olds):
        below, row = lengths[-1], [0]
        for at, at_new in enumerate(reversed(news)):
            row.append(below[at] + 1 if old[at_old] == new[at_new] else max(below[at + 1], row[at]))
        lengths.append(row)
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(olds) and j < len(news):
        if old[olds[i]] == new[news[j]]:
            found.append((olds[i], news[j]))
            i, j = i + 1, j + 1
        elif lengths[-i - 2][len(news) - j] >= lengths[-i - 1][len(news) - j - 1]:
            i += 1
        else:
            j += 1
    return found


def _slide(lines: Sequence[str], changed: list[bool]) -> None:
    """Move each block of `changed` lines to where a reader would cut the text.

    A block can be moved by a line if the line that it leaves equals the one that it takes: the text
    without the block stays the same. Git decides as follows, roughly: before lines that are
    indented least, then beside a blank line; else as low as possible.
    """
    for start, end in list(_blocks(changed)):
        up = down = 0
        while up < min(start, _MOST_SLID) and not changed[start - up - 1]:
            if lines[start - up - 1] != lines[end - up - 1]:
                break
            up += 1
        while down < min(len(lines) - end, _MOST_SLID) and not changed[end + down]:
            if lines[start + down] != lines[end + down]:
                break
            down += 1
        if up or down:
            best = min(
                range(-up, down + 1),
                key=lambda by: (*_cost_of_cuts(lines, start + by, end + by), -by),
            )
            changed[start:end] = [False] * (end - start)
            changed[start + best : end + best] = [True] * (end - start)


def _blocks(changed: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The first index of each run of true values, and the index after its last."""
    end = 0
    for at in compress(range(len(changed)), changed):
        if at >= end:
            end = at + next(
                run for run in count(1) if at + run >= len(changed) or not changed[at + run]
            )
            yield at, end


def _cost_of_cuts(lines: Sequence[str], start: int, end: int) -> tuple[int, bool]:
    indents = _indent_from(lines, start) + _indent_from(lines, end)
    is_beside_blank = start == 0 or not lines[start - 1].strip() or not lines[start].strip()
    return indents, not is_beside_blank


def _indent_from(lines: Sequence[str], start: int) -> int:
    """The indentation of the first line from `start` on that is not blank; 0 at the end."""
    for line in lines[start : start + _MOST_SLID]:
        if text := line.expandtabs(_TAB_WIDTH).lstrip():
            return len(line.expandtabs(_TAB_WIDTH)) - len(text)
    return 0
