"""Which lines of a text were there before a change: only what the two texts prove."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LineSource:
    """Where a line after a change may come from.

    Attributes:
        kept: Indices of the earlier lines that it may be.
        may_be_new: Whether the change may have added it.
    """

    kept: frozenset[int]
    may_be_new: bool


_NEW = LineSource(frozenset(), may_be_new=True)


def lines_of(text: str) -> list[str]:
    r"""The lines of `text` without their ends; only ``\n`` ends one."""
    return text.removesuffix("\n").split("\n") if text else []


def sources_of(before: Sequence[str], after: Sequence[str]) -> list[LineSource]:
    """The possible sources of each line in `after`, a change of `before`.

    Lines that occur once in both are fixed points, except for those that the change moved.
    Between two fixed points the same applies again. In what remains, a text that only occurs after
    the change is new, and of equal lines any may be the kept one.
    """
    found = [_NEW] * len(after)
    waiting = [(0, len(before), 0, len(after))]
    while waiting:
        old_start, old_end, new_start, new_end = waiting.pop()
        old, new = before[old_start:old_end], after[new_start:new_end]
        if not old or not new:
            continue
        fixed = _all_that_is_in_both(old, new) or _fixed(old, new)
        if not fixed:
            for at, source in enumerate(_by_text(old, new)):
                kept = frozenset(old_start + index for index in source.kept)
                found[new_start + at] = LineSource(kept, source.may_be_new)
            continue
        last_old = last_new = -1
        for at_old, at_new in (*fixed, (len(old), len(new))):
            if at_new < len(new):
                kept = frozenset((old_start + at_old,))
                found[new_start + at_new] = LineSource(kept, may_be_new=False)
            waiting.append(
                (
                    old_start + last_old + 1,
                    old_start + at_old,
                    new_start + last_new + 1,
                    new_start + at_new,
                )
            )
            last_old, last_new = at_old, at_new
    return found


def _all_that_is_in_both(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The places of the lines that are in both, if those have the same order and number in both."""
    there, now = set(old), set(new)
    in_old = [at for at, line in enumerate(old) if line in now]
    in_new = [at for at, line in enumerate(new) if line in there]
    if [old[at] for at in in_old] != [new[at] for at in in_new]:
        return []
    return list(zip(in_old, in_new, strict=True))


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


def _by_text(old: Sequence[str], new: Sequence[str]) -> Iterator[LineSource]:
    places: dict[str, set[int]] = {}
    for at, line in enumerate(old):
        places.setdefault(line, set()).add(at)
    only_removed = _is_within(new, old)
    shared = {
        line: LineSource(frozenset(indices), may_be_new=not only_removed)
        for line, indices in places.items()
    }
    return (shared.get(line, _NEW) for line in new)


def _is_within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether `part` is `whole` with some items removed."""
    rest = iter(whole)
    return all(item in rest for item in part)
