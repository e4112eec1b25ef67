"""Places in a text: its lines, its words, and where a motion leads. Offsets count code points."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

MotionKind: TypeAlias = Literal["exclusive", "inclusive", "lines"]
END_OF_LINE: Final = 1_000_000_000
"""The column that ``$`` keeps to on longer and shorter lines."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a motion leads, and whether an operator takes the character, or the lines, there."""

    at: int
    kind: MotionKind = "exclusive"


def line_start(text: str, at: int) -> int:
    """Where the line of `at` begins."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Where the line of `at` ends: its line feed, or the end of the text."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def first_letter(text: str, at: int) -> int:
    """The first character of the line that is no blank; its last one where all are."""
    start, end = line_start(text, at), line_end(text, at)
    line = text[start:end]
    indent = len(line) - len(line.lstrip())
    return start + (indent if indent < len(line) else max(len(line) - 1, 0))


def on_a_letter(text: str, at: int) -> int:
    """`at`, or the last character of its line where `at` is behind it: the cursor's place."""
    start, end = line_start(text, at), line_end(text, at)
    return max(start, min(at, end - 1))


def lines_away(text: str, at: int, count: int, column: int) -> int | None:
    """So many lines below `at`, or above where negative, in `column`; None where there are none.

    Fewer where there are not so many.
    """
    place = line_start(text, at)
    moved = False
    for _ in range(abs(count)):
        if count > 0:
            end = line_end(text, place)
            if end == len(text):
                break
            place = end + 1
        else:
            if place == 0:
                break
            place = line_start(text, place - 1)
        moved = True
    if not moved:
        return None
    return on_a_letter(text, min(place + column, line_end(text, place)))


def line_numbered(text: str, number: int) -> int:
    """Where line `number`, from 1, begins; the last one where there are fewer."""
    place = 0
    for _ in range(number - 1):
        end = line_end(text, place)
        if end == len(text):
            break
        place = end + 1
    return place


class Kind(IntEnum):
    """What words are told apart by."""

    BLANK = 0
    MARK = 1
    WORD = 2


def kind_of(letter: str, *, is_big: bool) -> Kind:
    """The kind of a character; `is_big`: all that is no blank is one word."""
    if letter.isspace():
        return Kind.BLANK
    return Kind.WORD if is_big or letter.isalnum() or letter == "_" else Kind.MARK


def is_empty_line(text: str, at: int) -> bool:
    """Whether the line feed at `at` is all of its line."""
    return text[at] == "\n" and (at == 0 or text[at - 1] == "\n")


def next_word(text: str, at: int, *, is_big: bool) -> int:
    """Where the next word begins; an empty line is one."""
    end = len(text)
    place = at
    if place < end and (kind := kind_of(text[place], is_big=is_big)) != Kind.BLANK:
        while place < end and kind_of(text[place], is_big=is_big) == kind:
            place += 1
    while place < end and text[place].isspace():
        if place > at and is_empty_line(text, place):
            return place
        place += 1
    return place


def word_before(text: str, at: int, *, is_big: bool) -> int:
    """Where the word before `at` begins, or the one `at` is in."""
    place = at - 1
    while place > 0 and text[place].isspace():
        if is_empty_line(text, place):
            return place
        place -= 1
    if place <= 0:
        return 0
    kind = kind_of(text[place], is_big=is_big)
    while place > 0 and kind_of(text[place - 1], is_big=is_big) == kind:
        place -= 1
    return place


def end_of_word(text: str, at: int, *, is_big: bool) -> int:
    """The last character of the word `at` is in, or of the next one where it is that already."""
    place = at + 1
    while place < len(text) and text[place].isspace():
        place += 1
    if place >= len(text):
        return max(len(text) - 1, at)
    kind = kind_of(text[place], is_big=is_big)
    while place + 1 < len(text) and kind_of(text[place + 1], is_big=is_big) == kind:
        place += 1
    return place


def words_end(text: str, at: int, count: int, *, is_big: bool) -> int:
    """The last character of the word `at` is in, and of so many in all."""
    kind = kind_of(text[at], is_big=is_big)
    place = at
    while place + 1 < len(text) and kind_of(text[place + 1], is_big=is_big) == kind:
        place += 1
    for _ in range(min(count, len(text)) - 1):
        place = end_of_word(text, place, is_big=is_big)
    return place


def found_in_line(text: str, at: int, how: str, letter: str, *, again: bool) -> int | None:
    """Where ``f``, ``F``, ``t`` or ``T`` leads for `letter`; None where the line has none.

    `again`: ``t`` and ``T`` go on behind the letter they stand beside.
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


_Step: TypeAlias = Callable[[str, int], int]
_WORD_MOTIONS: Final[Mapping[str, tuple[_Step, MotionKind]]] = MappingProxyType(
    {
        "w": (lambda text, at: next_word(text, at, is_big=False), "exclusive"),
        "W": (lambda text, at: next_word(text, at, is_big=True), "exclusive"),
        "b": (lambda text, at: word_before(text, at, is_big=False), "exclusive"),
        "B": (lambda text, at: word_before(text, at, is_big=True), "exclusive"),
        "e": (lambda text, at: end_of_word(text, at, is_big=False), "inclusive"),
        "E": (lambda text, at: end_of_word(text, at, is_big=True), "inclusive"),
    }
)


def goal_of(text: str, at: int, motion: str, count: int | None) -> Goal | None:
    """Where a motion without letters of its own leads; None where it leads nowhere.

    ``j`` and ``k``, which keep a column, are `lines_away`; ``f`` and the like `found_in_line`.
    """
    times = count or 1
    if motion in _WORD_MOTIONS:
        step, kind = _WORD_MOTIONS[motion]
        place = at
        for _ in range(min(times, len(text) + 1)):
            place = step(text, place)
        return None if place == at and kind == "exclusive" else Goal(place, kind)
    match motion:
        case "h":
            place = max(at - times, line_start(text, at))
            return Goal(place) if place < at else None
        case "l":
            place = min(at + times, line_end(text, at))
            return Goal(place) if place > at else None
        case "0":
            return Goal(line_start(text, at))
        case "^":
            return Goal(first_letter(text, at))
        case "$":
            below = lines_away(text, at, times - 1, 0) if times > 1 else at
            end = line_end(text, at if below is None else below)
            return Goal(max(end - 1, line_start(text, end)), "inclusive")
        case "gg" | "G":
            default = 1 if motion == "gg" else text.count("\n") + 1
            return Goal(first_letter(text, line_numbered(text, count or default)), "lines")
        case _:
            return None
