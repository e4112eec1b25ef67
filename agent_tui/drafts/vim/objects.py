"""Text objects: the word, quotation, brackets or paragraph that a place is in."""

import re
from itertools import groupby
from typing import Final

from agent_tui.drafts.vim.motions import Extent, line_end, line_start

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
    """The text object that `at` is in; None if there is none.

    Args:
        text: All of it.
        at: A place in it.
        name: Two letters, such as ``iw`` or ``a(``.
        count: So many words or paragraphs, or so many brackets further out.
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
        return _quoted(text, at, what, is_around=is_around)
    return _bracketed(text, at, _BRACKETS[what], is_around=is_around)


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


def _quoted(text: str, at: int, quote: str, *, is_around: bool) -> Extent | None:
    quotation = re.compile(rf"(\s*){quote}((?:\\.|[^{quote}\\])*){quote}(\s*)")
    for found in quotation.finditer(text, line_start(text, at), line_end(text, at)):
        if at <= found.end(2):
            if not is_around:
                return Extent(*found.span(2))
            start = found.start() if not found[3] else found.end(1)
            return Extent(start, found.end())
    return None


def _bracketed(text: str, at: int, pair: str, *, is_around: bool) -> Extent | None:
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
    """The bracket that opens what `at` is in; -1 if it is in none."""
    opens, closes = pair
    depth = 0
    for place in range(min(at, len(text) - 1), -1, -1):
        depth += (text[place] == closes and place != at) - (text[place] == opens)
        if depth < 0:
            return place
    return -1


def _paragraph(text: str, at: int, *, is_around: bool) -> Extent:
    """Lines that are all blank or all not; with the block behind it if `is_around`."""
    blocks: list[tuple[int, int]] = []
    start = 0
    for _, lines in groupby(text.split("\n"), key=lambda line: not line.strip()):
        length = sum(len(line) + 1 for line in lines)
        blocks.append((start, start + length - 1))
        start += length
    here = next(number for number, (_, end) in enumerate(blocks) if at <= end)
    last = min(here + is_around, len(blocks) - 1)
    return Extent(blocks[here][0], blocks[last][1], lines=True)
