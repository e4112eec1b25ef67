"""Where the hunks of a change lie in another version of its file, such as git's index. Pure."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

from agent_tui.features.review.changes import Hunk

_CONTEXT = 3
_MOST_COMPARED = 20_000
"""Lines; difflib takes more than linear time."""

_TOP, _END = "\n<", "\n>"
"""What no line is: only its last character can be a newline."""

_Blocks: TypeAlias = Sequence[tuple[int, int, int]]
_Path: TypeAlias = "tuple[HunkPlace, _Path] | None"


class _Region(NamedTuple):
    """The changed lines of a hunk, as slices of the old and the new file."""

    old: slice
    new: slice


class HunkPlace(NamedTuple):
    """The lines of a text that belong to a hunk, and whether they are those after it."""

    start: int
    end: int
    is_applied: bool


def place_hunks(
    text: Sequence[str], old: Sequence[str], new: Sequence[str], hunks: Sequence[Hunk]
) -> list[HunkPlace | None]:
    """Where each of `hunks` lies in `text`; None if that is not certain.

    Args:
        text: Lines of another version of the file.
        old: Lines of the file before all of `hunks`.
        new: Those after all of them.
        hunks: All hunks from `old` to `new`, in order.
    """
    regions = [_region_of(hunk) for hunk in hunks]
    if (places := _place_in_mixture(text, old, new, regions)) is not None:
        return [*places]
    if max(len(old), len(new)) + len(text) > _MOST_COMPARED:
        return [None] * len(hunks)
    from_old, from_new = _matching_blocks(old, text), _matching_blocks(new, text)
    return [
        _one_place(
            _place_in_blocks(region.old, len(old), from_old, is_applied=False),
            _place_in_blocks(region.new, len(new), from_new, is_applied=True),
        )
        for region in regions
    ]


def switch_place(
    text: Sequence[str], old: Sequence[str], new: Sequence[str], hunk: Hunk, place: HunkPlace
) -> list[str]:
    """`text` with `hunk` applied at `place`, or taken back if it is applied there."""
    region = _region_of(hunk)
    instead = old[region.old] if place.is_applied else new[region.new]
    return [*text[: place.start], *instead, *text[place.end :]]


def _region_of(hunk: Hunk) -> _Region:
    signs = "".join(line.sign for line in hunk.lines)
    head = len(signs) - len(signs.lstrip(" "))
    tail = len(signs) - len(signs.rstrip(" "))
    old_end = hunk.old_start + len(signs) - signs.count("+") - tail
    new_end = hunk.new_start + len(signs) - signs.count("-") - tail
    return _Region(slice(hunk.old_start + head, old_end), slice(hunk.new_start + head, new_end))


def _place_in_mixture(
    text: Sequence[str], old: Sequence[str], new: Sequence[str], regions: Sequence[_Region]
) -> list[HunkPlace] | None:
    """The places if `text` is `old` with some of the hunks; None if it is not.

    All positions that the lines so far can end at are followed, so equal lines mislead nothing.
    """
    ends: dict[int, _Path] = {0: None}
    done = 0
    for region in regions:
        gap = old[done : region.old.start]
        done = region.old.stop
        found: dict[int, _Path] = {}
        for at, path in ends.items():
            if (start := _after(text, at, gap)) is None:
                continue
            for is_applied, lines in ((False, old[region.old]), (True, new[region.new])):
                if (end := _after(text, start, lines)) is not None:
                    found.setdefault(end, (HunkPlace(start, end, is_applied), path))
        ends = found
    rest = old[done:]
    path = ends.get(len(text) - len(rest))
    if len(text) - len(rest) not in ends or text[len(text) - len(rest) :] != rest:
        return None
    places: list[HunkPlace] = []
    while path is not None:
        place, path = path
        places.append(place)
    return places[::-1]


def _after(text: Sequence[str], at: int, lines: Sequence[str]) -> int | None:
    """The index after `lines` if they are in `text` at the index `at`, else None."""
    end = at + len(lines)
    return end if text[at:end] == lines else None


def _matching_blocks(lines: Sequence[str], text: Sequence[str]) -> _Blocks:
    ended = [_TOP, *lines, _END], [_TOP, *text, _END]
    return SequenceMatcher(None, *ended, autojunk=False).get_matching_blocks()


def _place_in_blocks(
    region: slice, count: int, blocks: _Blocks, *, is_applied: bool
) -> HunkPlace | None:
    """Where `region` of `count` lines lies in a text that has it and the lines around it."""
    first = max(region.start + 1 - _CONTEXT, 0)
    last = min(region.stop + 1 + _CONTEXT, count + 2)
    for here, there, size in blocks:
        if here <= first and last <= here + size:
            shift = there - here
            return HunkPlace(region.start + shift, region.stop + shift, is_applied)
    return None


def _one_place(left: HunkPlace | None, right: HunkPlace | None) -> HunkPlace | None:
    """The place if there is only one; None if there is none, or equal lines leave two."""
    return (left or right) if left is None or right is None else None
