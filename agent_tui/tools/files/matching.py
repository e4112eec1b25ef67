"""Finds the text that an edit names, even if it was copied with small differences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rapidfuzz import fuzz

from agent_tui.omissions import marks_in
from agent_tui.tools.files.merging import indent_of, merged, plain
from agent_tui.tools.shorten import cut_line

_MAX_LINES_SEARCHED = 20_000
_MAX_LINES_SHOWN = 12
_WORTH_SHOWING = 60.0
"""Percent of similarity below which a place cannot be the intended one."""
_BLANKS = " \t"
_NUMBERED = re.compile(r"[ \t]*(\d{1,7})(?:\t|→|[:-]|$)")
"""Line numbers as `read`, `grep` and ``cat -n`` print them."""
_ESCAPED = re.compile(r"""\\([nt"'`\\])""")
_ALL = frozenset("nt\"'`\\")
_WRITTEN_LINE_END = re.compile(r"""(?<!\\)\\n(?!\\?["'`])""")
"""Excludes one at the end of a quotation, which is a printed escape, not a line end."""

_ESCAPES = {"n": "\n", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text is in a file, and its replacement."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Places:
    """All places of one text. `but_for` says which differences were ignored; empty if none."""

    found: tuple[Place, ...] = ()
    but_for: str = ""


def find_places(text: str, old: str, new: str) -> Places:
    """The places of `old` in `text`, with as few differences ignored as possible.

    If something was ignored, whatever `new` repeats of `old` keeps the file's characters and
    indentation, and lines that `new` adds get the file's style of indentation.

    Args:
        text: The file, line ends as ``\\n``.
        old: The text to find, not empty.
        new: Its replacement.
    """
    rewritten = [reading for reading in _rewritten(old, new) if reading[1].strip()]
    readings = [("", old, new), *rewritten]
    for but_for, given, wanted in readings:
        if found := _exact_places(text, given, wanted):
            return Places(found, but_for)
    for overlooked, pattern in _FOLDS:
        folded = _Folded(text, pattern)
        for but_for, given, wanted in readings:
            if found := tuple(_folded_places(folded, _Folded(given, pattern), wanted)):
                return Places(found, " and ".join(filter(None, (but_for, overlooked))))
    return Places()


_AT_LINE_ENDS = r"(?<![ \t])[ \t]++$"
_FOLDS: Final = tuple(
    (overlooked, re.compile(pattern, re.MULTILINE))
    for overlooked, pattern in (
        ("spaces at line ends or typographic characters", rf"{_AT_LINE_ENDS}|…"),
        ("indentation", rf"{_AT_LINE_ENDS}|^[ \t]+|…"),
        ("spaces within lines", rf"{_AT_LINE_ENDS}|^[ \t]+|[ \t]+|…"),
    )
)
"""From strict to loose. Matches are removed at the ends of a line, elsewhere shortened."""


class _Folded:
    """A text without the ignored characters, which maps positions back to the original."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self.original = text
        same_length = plain(text)
        pieces: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        done = 0
        for found in pattern.finditer(same_length):
            start, end = found.span()
            self._keep(done, start)
            is_first = start == 0 or text[start - 1] == "\n"
            is_last = end == len(text) or text[end] == "\n"
            short = "..." if found[0] == "…" else "" if is_first or is_last else " "
            pieces += (same_length[done:start], short)
            self._starts += [start] * len(short)
            self._ends += [end] * len(short)
            done = end
        self._keep(done, len(text))
        self.text = "".join([*pieces, same_length[done:]])

    def _keep(self, start: int, end: int) -> None:
        self._starts.extend(range(start, end))
        self._ends.extend(range(start + 1, end + 1))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original offsets of the span from `start` to `end` here."""
        return self._starts[start], self._ends[end - 1]


def _folded_places(file: _Folded, sought: _Folded, new: str) -> Iterator[Place]:
    """Where `sought` occurs; if its end lost blanks, the match must end a line too."""
    old = sought.original
    if not sought.text.strip():
        return
    lost_start = old[0] in _BLANKS and sought.text[0] not in _BLANKS
    lost_end = old[-1] in _BLANKS
    for at in _occurrences(file.text, sought.text):
        end = at + len(sought.text)
        if lost_start and file.text[max(at - 1, 0) : at] not in ("", "\n"):
            continue
        if lost_end and file.text[end : end + 1] not in ("", "\n"):
            continue
        start, stop = file.span(at, end)
        start = _with_indentation(file.original, start, stop, old)
        starts_line = file.original[max(start - 1, 0) : start] in ("", "\n")
        replaced = merged(file.original[start:stop], old, new, starts_line=starts_line)
        yield Place(start, stop, replaced)


def _with_indentation(text: str, start: int, stop: int, old: str) -> int:
    """`start`, or the start of its line if `old` has its indentation or all lack the same."""
    line_start = text.rfind("\n", 0, start) + 1
    lead = text[line_start:start]
    if lead.strip() or old[0] == "\n":
        return start
    if old[0] in _BLANKS:
        return line_start
    others = zip(text[start:stop].split("\n")[1:], old.split("\n")[1:], strict=True)
    indents = [(indent_of(have), indent_of(gave)) for have, gave in others if gave.strip()]
    is_shifted = bool(indents) and all(have == lead + gave for have, gave in indents)
    return line_start if is_shifted else start


def _rewritten(old: str, new: str) -> Iterator[tuple[str, str, str]]:
    """Other readings of a call: the difference each ignores, and the adjusted `old` and `new`."""
    if numbers := _pasted_numbers(old):
        near = range(numbers[0], numbers[-1] + 1 + new.count("\n"))
        yield "line numbers", _without_numbers(old, near), _without_numbers(new, near)
    if kinds := frozenset(_ESCAPED.findall(old)):
        given = _unescaped(old, kinds)
        is_new_escaped = fuzz.ratio(new, old) >= fuzz.ratio(new, given)
        if "\n" in new or not ("n" in kinds or _WRITTEN_LINE_END.search(new)):
            kinds = _ALL - {"n"}
        else:
            kinds = _ALL
        yield "extra backslashes", given, _unescaped(new, kinds) if is_new_escaped else new


def _pasted_numbers(text: str) -> list[int]:
    """The numbers at the start of all lines of `text` if they are consecutive; else none."""
    found = [_NUMBERED.match(line) for line in text.removesuffix("\n").split("\n")]
    numbers = [int(match[1]) for match in found if match]
    first = numbers[0] if numbers else 0
    return numbers if numbers == list(range(first, first + len(found))) else []


def _without_numbers(text: str, near: range) -> str:
    """`text` without numbers from `near` at the start of lines."""
    found = ((line, _NUMBERED.match(line)) for line in text.split("\n"))
    return "\n".join(
        line[match.end() :] if match and int(match[1]) in near else line for line, match in found
    )


def _exact_places(text: str, old: str, new: str) -> tuple[Place, ...]:
    return tuple(Place(at, at + len(old), new) for at in _occurrences(text, old))


def _unescaped(text: str, kinds: frozenset[str]) -> str:
    """`text` with escapes of these `kinds` undone once."""
    return _ESCAPED.sub(
        lambda found: _ESCAPES.get(found[1], found[1]) if found[1] in kinds else found[0], text
    )


def _occurrences(text: str, sought: str) -> list[int]:
    places: list[int] = []
    at = text.find(sought)
    while at >= 0:
        places.append(at)
        at = text.find(sought, at + len(sought))
    return places


def describe_miss(text: str, wanted: str) -> str:
    """Why `wanted` is not in `text`, and the nearest match, so that the model can fix its call."""
    if marks := marks_in(wanted):
        return (
            f"It contains {marks[0][-200:]!r}, a placeholder for text left out of this "
            "conversation. Read the file again."
        )
    lines = text.split("\n")[:_MAX_LINES_SEARCHED]
    sought = wanted.strip("\n").split("\n")
    start, score = _nearest_window(lines, sought)
    if score < _WORTH_SHOWING:
        return "Nothing similar is in it. Read the file again."
    window = lines[start : start + len(sought)]
    shown = "\n".join(
        f"{number}\t{cut_line(line, 300)}"
        for number, line in enumerate(window[:_MAX_LINES_SHOWN], start=start + 1)
    )
    last = start + len(window)
    place = f"line {last}" if len(window) == 1 else f"lines {start + 1}-{last}"
    return f"{_difference(window, sought, start + 1)} Nearest text, {place}:\n{shown}"


def _nearest_window(lines: list[str], sought: list[str]) -> tuple[int, float]:
    """The start (from 0) of the lines most similar to `sought`, and the similarity in percent.

    The most distinctive line of `sought` selects candidates, which keeps the time linear.
    """
    anchor = max(range(len(sought)), key=lambda index: len(sought[index].strip()))
    target = sought[anchor].strip()
    ranked = sorted(
        ((fuzz.ratio(line.strip(), target), index) for index, line in enumerate(lines)),
        key=lambda pair: (-pair[0], pair[1]),
    )
    best_start, best_score = 0, 0.0
    joined = "\n".join(line.strip() for line in sought)
    for _, index in ranked[:20]:
        start = max(0, index - anchor)
        window = "\n".join(line.strip() for line in lines[start : start + len(sought)])
        score = fuzz.ratio(window, joined)
        if score > best_score:
            best_start, best_score = start, score
    return best_start, best_score


def _difference(found: list[str], sought: list[str], first: int) -> str:
    """One sentence on how two runs of lines differ; `first` is the number of `found[0]`."""
    if ["".join(line.split()) for line in found] == ["".join(line.split()) for line in sought]:
        return "Only whitespace within lines differs."
    if [line.casefold() for line in found] == [line.casefold() for line in sought]:
        return "Only upper and lower case differ."
    for index, (have, want) in enumerate(zip(found, sought, strict=False)):
        if have.split() != want.split():
            return (
                f"Line {index + 1} of the text you gave, {cut_line(want, 200)!r}, differs from "
                f"line {first + index}."
            )
    return "The file ends before that."
