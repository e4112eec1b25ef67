"""Places in a text for the keys of vi: lines, words, motions and text objects, in code points."""

import re
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Literal, TypeAlias

MotionKind: TypeAlias = Literal["exclusive", "inclusive", "lines"]
MOTIONS: Final = frozenset((*"hl jkwWbBeE0^$G;,", "gg"))
LETTER_MOTIONS: Final = frozenset("fFtT")
END_OF_LINE: Final = 1_000_000_000
"""The column that ``$`` keeps on longer and shorter lines."""

_WORDS: Final = {
    False: re.compile(r"\w+|[^\w\s]+|^$", re.MULTILINE),
    True: re.compile(r"\S+|^$", re.MULTILINE),
}
"""Words, and words that end only at blanks (``W``). An empty line counts as one."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A text and the position of the cursor."""

    text: str
    cursor: int = 0

    def at(self, cursor: int) -> "Buffer":
        """The same text with the cursor at `cursor`, or on the last character of its line."""
        return replace(self, cursor=on_a_letter(self.text, cursor))

    def replace_range(self, start: int, end: int, by: str, cursor: int) -> "Buffer":
        """The same with the text from `start` to `end` replaced."""
        return Buffer(self.text[:start] + by + self.text[end:], cursor)


@dataclass(frozen=True, slots=True)
class Extent:
    """A range of a text from `start` up to `end`; `lines`: it consists of whole lines."""

    start: int
    end: int
    lines: bool = False


@dataclass(frozen=True, slots=True)
class MotionGoal:
    """The goal of a motion, and whether an operator includes its character or lines."""

    at: int
    kind: MotionKind = "exclusive"


def line_start(text: str, at: int) -> int:
    """The start of the line of `at`."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """The end of the line of `at`: its line feed, or the end of the text."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def whole_lines(text: str, start: int, last: int) -> Extent:
    """The lines from that of `start` to that of `last`, without the last line feed."""
    return Extent(line_start(text, start), line_end(text, last), lines=True)


def first_letter(text: str, at: int) -> int:
    """The first non-blank character of the line; its last one if all are blank."""
    start = line_start(text, at)
    line = text[start : line_end(text, at)]
    return on_a_letter(text, start + len(line) - len(line.lstrip()))


def on_a_letter(text: str, at: int) -> int:
    """`at`, or the last character of its line if `at` is after it: the cursor's position."""
    return max(line_start(text, at), min(at, line_end(text, at) - 1))


def lines_away(text: str, at: int, count: int, column: int = 0) -> int:
    """`column` of the line `count` lines below `at` (negative: above), at most the last line."""
    lines = text.split("\n")
    row = max(0, min(text.count("\n", 0, at) + count, len(lines) - 1))
    start = sum(len(line) + 1 for line in lines[:row])
    return on_a_letter(text, start + min(column, len(lines[row])))


def words_end(text: str, at: int, count: int, *, is_big: bool) -> int:
    """The end of the word `count` words from `at`, which ``cw`` changes up to."""
    ends = [word.end() for word in _WORDS[is_big].finditer(text) if word[0] and word.end() > at]
    return ends[min(count, len(ends)) - 1] if ends else at


def find_in_line(text: str, at: int, how: str, letter: str, *, again: bool) -> int | None:
    """The goal of ``f``, ``F``, ``t`` or ``T`` for `letter`; None if the line has none.

    `again`: ``t`` and ``T`` skip the letter beside the cursor.
    """
    step = 1 if how in "ft" else -1
    start = at + step * (2 if again and how in "tT" else 1)
    if step > 0:
        found = text.find(letter, start, line_end(text, at))
    else:
        found = text.rfind(letter, line_start(text, at), max(start + 1, 0))
    if found < 0 or letter == "\n":
        return None
    return found - step if how in "tT" else found


def goal_of(text: str, at: int, motion: str, count: int | None) -> MotionGoal | None:
    """The goal of a motion without a letter; None if it has none.

    ``j`` and ``k``, which keep a column, use `lines_away`; ``f`` and the like `find_in_line`.
    """
    times = count or 1
    match motion:
        case "h":
            place = max(at - times, line_start(text, at))
        case "l" | " ":
            place = min(at + times, line_end(text, at))
        case "0":
            return MotionGoal(line_start(text, at))
        case "^":
            return MotionGoal(first_letter(text, at))
        case "$":
            end = line_end(text, lines_away(text, at, times - 1))
            return MotionGoal(max(end - 1, line_start(text, end)), "inclusive")
        case "gg" | "G":
            row = (count or (1 if motion == "gg" else len(text) + 1)) - 1
            return MotionGoal(first_letter(text, lines_away(text, 0, row)), "lines")
        case _:
            return _word_goal(text, at, motion, times)
    return MotionGoal(place) if place != at else None


def _word_goal(text: str, at: int, motion: str, times: int) -> MotionGoal | None:
    """The goal of ``w``, ``b``, ``e`` and their capitals."""
    words = [found.span() for found in _WORDS[motion.isupper()].finditer(text)]
    match motion.lower():
        case "w":
            starts = [start for start, _ in words if start > at]
            place = starts[times - 1] if times <= len(starts) else len(text)
        case "b":
            starts = [start for start, _ in words if start < at]
            place = starts[-times] if times <= len(starts) else 0
        case _:
            ends = [end - 1 for start, end in words if end - 1 > at and end > start]
            place = ends[times - 1] if times <= len(ends) else max(len(text) - 1, at)
            return MotionGoal(place, "inclusive")
    return MotionGoal(place) if place != at else None


def extent_to(text: str, at: int, goal: MotionGoal, motion: str) -> Extent:
    """The range of an operator between the cursor and the goal of a motion."""
    start, end = sorted((at, goal.at))
    if goal.kind == "lines":
        return whole_lines(text, start, end)
    if goal.kind == "inclusive":
        return Extent(start, min(end + 1, line_end(text, end)))
    if motion in ("w", "W"):
        feed = text.rfind("\n", start, end)
        if feed >= 0 and not text[feed:end].strip():
            end = feed  # the line of the last word is not joined with the next
    elif end > start and text[end - 1] == "\n":
        if not text[line_start(text, start) : start].strip():
            return whole_lines(text, start, end - 1)
        end -= 1
    return Extent(start, end)


_BRACKETS: Final = {
    **dict.fromkeys("()b", "()"),
    **dict.fromkeys("{}B", "{}"),
    **dict.fromkeys("[]", "[]"),
    **dict.fromkeys("<>", "<>"),
}
_QUOTES: Final = frozenset("\"'`")
OBJECTS: Final = frozenset({"w", "W", "p", *_BRACKETS, *_QUOTES})
"""What may follow ``i`` and ``a``."""

_RUNS: Final = {
    "w": re.compile(r"\w+|[^\w\s]+|\s+"),
    "W": re.compile(r"\S+|\s+"),
}


def object_at(text: str, at: int, name: str, count: int) -> Extent | None:
    """The text object around `at`; None if there is none.

    Args:
        text: The whole text.
        at: A position in it.
        name: Two letters, such as ``iw`` or ``a(``.
        count: Number of words or paragraphs, or of brackets outward.
    """
    found = _object(text, at, name)
    for _ in range(min(count, len(text)) - 1):
        if found is None:
            return None
        if name[1] in _BRACKETS:
            outside = found.start - (1 if name[0] == "a" else 2)
            outer = _object(text, max(outside, 0), name)
            found = outer if outer is not None and outer.start < found.start else None
        else:
            following = _object(text, min(found.end + found.lines, len(text)), name) or found
            found = Extent(found.start, max(found.end, following.end), found.lines)
    return found


def _object(text: str, at: int, name: str) -> Extent | None:
    is_around, what = name[0] == "a", name[1]
    if what in _RUNS:
        return _word(text, at, _RUNS[what], is_around=is_around)
    if what == "p":
        return _paragraph(text, at, is_around=is_around)
    if what in _QUOTES:
        return _quotation(text, at, what, is_around=is_around)
    return _bracket_block(text, at, _BRACKETS[what], is_around=is_around)


def _word(text: str, at: int, runs: re.Pattern[str], *, is_around: bool) -> Extent:
    found = [run.span() for run in runs.finditer(text, line_start(text, at), line_end(text, at))]
    here = next((number for number, (_, end) in enumerate(found) if at < end), None)
    if here is None:
        return Extent(at, at)

    def is_blank(number: int) -> bool:
        return 0 <= number < len(found) and text[found[number][0]].isspace()

    first = last = here
    if is_around and here + 1 < len(found) and (is_blank(here) or is_blank(here + 1)):
        last += 1
    elif is_around and is_blank(here - 1):
        first -= 1
    return Extent(found[first][0], found[last][1])


def _quotation(text: str, at: int, quote: str, *, is_around: bool) -> Extent | None:
    quotation = re.compile(rf"(\s*){quote}((?:\\.|[^{quote}\\])*){quote}(\s*)")
    for found in quotation.finditer(text, line_start(text, at), line_end(text, at)):
        if at <= found.end(2):
            if not is_around:
                return Extent(*found.span(2))
            start = found.start() if not found[3] else found.end(1)
            return Extent(start, found.end())
    return None


def _bracket_block(text: str, at: int, pair: str, *, is_around: bool) -> Extent | None:
    opens, closes = pair
    start = _opening(text, at, pair)
    if start < 0:
        start = text.find(opens, at, line_end(text, at))  # as newer editors do
    depth = 0
    for end in range(start, len(text)) if start >= 0 else ():
        depth += (text[end] == opens) - (text[end] == closes)
        if depth == 0:
            return Extent(start, end + 1) if is_around else Extent(start + 1, end)
    return None


def _opening(text: str, at: int, pair: str) -> int:
    """The opening bracket around `at`; -1 if there is none."""
    opens, closes = pair
    depth = 0
    for place in range(min(at, len(text) - 1), -1, -1):
        depth += (text[place] == closes and place != at) - (text[place] == opens)
        if depth < 0:
            return place
    return -1


def _paragraph(text: str, at: int, *, is_around: bool) -> Extent:
    """Lines that are all blank or all not, with the block after them if `is_around`."""
    blocks: list[tuple[int, int]] = []
    start = 0
    for _, lines in groupby(text.split("\n"), key=lambda line: not line.strip()):
        length = sum(len(line) + 1 for line in lines)
        blocks.append((start, start + length - 1))
        start += length
    here = next(number for number, (_, end) in enumerate(blocks) if at <= end)
    last = min(here + is_around, len(blocks) - 1)
    return Extent(blocks[here][0], blocks[last][1], lines=True)
