"""Text objects: the word, quotation, brackets or paragraph that a place is in."""

from typing import Final

from agent_tui.drafts.vim.lines import Kind, kind_of, line_end, line_start

_BRACKETS: Final = {
    **dict.fromkeys(("(", ")", "b"), "()"),
    **dict.fromkeys(("{", "}", "B"), "{}"),
    **dict.fromkeys(("[", "]"), "[]"),
    **dict.fromkeys(("<", ">"), "<>"),
}
_QUOTES: Final = frozenset("\"'`")
OBJECTS: Final = frozenset({"w", "W", "p", *_BRACKETS, *_QUOTES})
"""What may follow ``i`` and ``a``."""


def object_at(text: str, at: int, name: str, count: int) -> tuple[int, int, bool] | None:
    """The extent of a text object, and whether it is of whole lines; None where there is none.

    Args:
        text: All of it.
        at: A place in it.
        name: Two letters, such as ``iw`` or ``a(``.
        count: So many words or paragraphs, or so many brackets further out.
    """
    is_around, what = name[0] == "a", name[1]
    if what in "wW":
        return (*_words(text, at, count, is_around=is_around, is_big=what == "W"), False)
    if what == "p":
        return (*_paragraphs(text, at, count, is_around=is_around), True)
    if what in _QUOTES:
        found = _quoted(text, at, what, is_around=is_around)
    else:
        found = _bracketed(text, at, _BRACKETS[what], count, is_around=is_around)
    return (*found, False) if found is not None else None


def _words(text: str, at: int, count: int, *, is_around: bool, is_big: bool) -> tuple[int, int]:
    first, last = line_start(text, at), line_end(text, at)

    def run(place: int, step: int) -> int:
        """The end of the characters of one kind."""
        if not first <= place < last:
            return place
        kind = kind_of(text[place], is_big=is_big)
        while first <= place + step < last and kind_of(text[place + step], is_big=is_big) == kind:
            place += step
        return place

    def is_blank(place: int) -> bool:
        return first <= place < last and kind_of(text[place], is_big=is_big) == Kind.BLANK

    if first == last:
        return at, at
    start, end = run(at, -1), run(at, 1) + 1
    began_blank = is_blank(at)
    for number in range(count):
        if number:
            end = min(run(end, 1) + 1, last)
        if is_around and (began_blank or is_blank(end)) and end < last:
            end = run(end, 1) + 1
    if is_around and not began_blank and not is_blank(end - 1) and is_blank(start - 1):
        start = run(start - 1, -1)
    return start, min(end, last)


def _quoted(text: str, at: int, quote: str, *, is_around: bool) -> tuple[int, int] | None:
    first, last = line_start(text, at), line_end(text, at)
    places = [
        place
        for place in range(first, last)
        if text[place] == quote and (place == first or text[place - 1] != "\\")
    ]
    for start, end in zip(places[::2], places[1::2], strict=False):
        if at <= end:
            if not is_around:
                return start + 1, end
            behind = end + 1
            while behind < last and text[behind].isspace():
                behind += 1
            if behind == end + 1:
                while start > first and text[start - 1].isspace():
                    start -= 1
            return start, behind
    return None


def _bracketed(
    text: str, at: int, pair: str, count: int, *, is_around: bool
) -> tuple[int, int] | None:
    opens, closes = pair
    start = at
    for number in range(count):
        found = _opening(text, start - (number > 0), opens, closes)
        if found is None and number == 0:
            found = _next_in_line(text, at, opens)
        if found is None:
            return None
        start = found
    end = _closing(text, start, opens, closes)
    if end is None:
        return None
    return (start, end + 1) if is_around else (start + 1, end)


def _opening(text: str, at: int, opens: str, closes: str) -> int | None:
    depth = 0
    for place in range(min(at, len(text) - 1), -1, -1):
        if text[place] == closes and place != at:
            depth += 1
        elif text[place] == opens:
            if depth == 0:
                return place
            depth -= 1
    return None


def _next_in_line(text: str, at: int, opens: str) -> int | None:
    place = text.find(opens, at, line_end(text, at))
    return place if place >= 0 else None


def _closing(text: str, start: int, opens: str, closes: str) -> int | None:
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == opens) - (text[place] == closes)
        if depth == 0:
            return place
    return None


def _paragraphs(text: str, at: int, count: int, *, is_around: bool) -> tuple[int, int]:
    """Whole lines: from the start of the first to the line feed of the last."""
    lines = text.split("\n")
    row = text.count("\n", 0, at)

    def end_of_block(begin: int) -> int:
        end = begin
        while end + 1 < len(lines) and bool(lines[end + 1].strip()) == bool(lines[begin].strip()):
            end += 1
        return end

    first = row
    while first > 0 and bool(lines[first - 1].strip()) == bool(lines[row].strip()):
        first -= 1
    last = end_of_block(row)
    for _ in range(count * 2 - 1 if is_around else count - 1):
        if last + 1 < len(lines):
            last = end_of_block(last + 1)
    start = sum(len(line) + 1 for line in lines[:first])
    return start, start + len("\n".join(lines[first : last + 1]))
