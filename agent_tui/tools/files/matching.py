"""Finds and replaces the text that an edit names, even if it was copied with small differences.

What the new text repeats of the copy stays as in the file; new lines get the file's style of
indentation.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from fractions import Fraction
from typing import Final

from agent_tui.omissions import marks_in
from agent_tui.tools.shorten import cut_line

_PLAIN: Final = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{FIGURE SPACE}", " "),
    }
)

_TAB_WIDTHS: Final = (4, 2, 8, 3, 1, 5, 6, 7)

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


def plain(text: str) -> str:
    """`text` at the same length, with typographic quotes, dashes and blanks made plain."""
    return text.translate(_PLAIN)


def indent_of(line: str) -> str:
    """The blanks and tabs at the start of a line."""
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def merge_text(found: str, old: str, new: str, *, starts_line: bool) -> str:
    """The text to put in place of `found`.

    Args:
        found: The text in the file.
        old: The model's copy: the same lines except for blanks and typography.
        new: The model's replacement for `old`.
        starts_line: Whether `found` begins at the start of a line.
    """
    have, gave = found.split("\n"), old.split("\n")
    want = new.translate(_characters(have, gave)).split("\n")
    blocks = SequenceMatcher(None, _keys(gave), _keys(want), autojunk=False).get_opcodes()
    rows = list(zip(have, gave, strict=True))
    repeated = [
        (*rows[before], want[after])
        for tag, first, last, start, end in blocks
        if tag == "equal"
        for before, after in zip(range(first, last), range(start, end), strict=True)
    ]
    indentation = _Indentation.learn(rows if starts_line else rows[1:], repeated, want)
    lines: list[str] = []
    for tag, first, last, start, end in blocks:
        wanted = want[start:end]
        if tag == "equal" or last - first == end - start:
            pairs = zip(rows[first:last], wanted, strict=True)
            lines.extend(_in_place_of(*row, line, indentation) for row, line in pairs)
        else:
            lines.extend(map(indentation.of_line, wanted))
    if not starts_line:
        lines[0] = indent_of(want[0]) + lines[0].lstrip(_BLANKS)
    return "\n".join(lines)


def _keys(lines: list[str]) -> list[str]:
    """The lines with differences in blanks and typography removed."""
    return [" ".join(plain(line).split()) for line in lines]


def _characters(have: list[str], gave: list[str]) -> dict[int, str]:
    """Maps characters that the copy always changed to those of the file."""
    seen: dict[str, set[str]] = {}
    for real, copy in zip(have, gave, strict=True):
        body, copied = real.strip(_BLANKS), copy.strip(_BLANKS)
        if plain(body) == plain(copied):
            for one, other in zip(copied, body, strict=True):
                seen.setdefault(one, set()).add(other)
    return {ord(one): other for one, others in seen.items() if len(others) == 1 for other in others}


@dataclass(frozen=True, slots=True)
class _Indentation:
    """Maps the indentation of a copy to that of the file.

    Attributes:
        known: Pairs seen in both; empty if the new text already has the file's indentation.
        tab_width: Columns of a tab, if one of the two uses tabs instead of blanks.
        has_tabs: Whether the file is that one.
        added: What the file has before the copy's indentation, on every line.
        dropped: How many characters of the copy's indentation the file lacks, on every line.
        scale: Blanks in the file for each blank in the copy, if not 1.
    """

    known: dict[str, str]
    tab_width: int = 0
    has_tabs: bool = False
    added: str = ""
    dropped: int = 0
    scale: Fraction = Fraction(1)

    @classmethod
    def learn(
        cls, rows: list[tuple[str, str]], repeated: list[tuple[str, str, str]], want: list[str]
    ) -> "_Indentation":
        """Derive the mapping from file lines with copies, repeated lines, and all new lines."""
        pairs = [(indent_of(gave), indent_of(have)) for have, gave in rows if gave.strip()]
        if _is_as_the_file(pairs, repeated, want):
            return cls({})
        known = dict(pairs)
        if width := next((width for width in _TAB_WIDTHS if _fits(width, known)), 0):
            return cls(known, width, any("\t" in real for real in known.values()))
        added = {real.removesuffix(copy) for copy, real in known.items() if real.endswith(copy)}
        dropped = {copy.removesuffix(real) for copy, real in known.items() if copy.endswith(real)}
        if len(added) == 1 and all(map(str.endswith, known.values(), known)):
            return cls(known, added=added.pop())
        if len(dropped) == 1 and all(map(str.endswith, known, known.values())):
            return cls(known, dropped=len(dropped.pop()))
        scales = {Fraction(len(real), len(copy)) for copy, real in known.items() if copy}
        is_scaled = len(scales) == 1 and not known.get("")
        return cls(known, scale=scales.pop()) if is_scaled else cls(known)

    def of(self, indent: str) -> str:
        """`indent` in the file's style."""
        if indent in self.known:
            return self.known[indent]
        if self.tab_width:
            columns = len(indent.expandtabs(self.tab_width))
            tabs, blanks = divmod(columns, self.tab_width) if self.has_tabs else (0, columns)
            return "\t" * tabs + " " * blanks
        if self.added or self.dropped:
            return self.added + indent[self.dropped :]
        if self.scale != 1:
            return " " * round(len(indent) * self.scale)
        nearest = max(filter(indent.startswith, self.known), key=len, default="")
        return self.known.get(nearest, "") + indent[len(nearest) :]

    def of_line(self, line: str) -> str:
        """`line` with the file's indentation; blank lines stay unchanged."""
        indent = indent_of(line)
        return line if len(indent) == len(line) else self.of(indent) + line[len(indent) :]


def _fits(tab_width: int, known: dict[str, str]) -> bool:
    """Whether all indentation has equal width in both, with tabs of `tab_width` columns."""
    return all(
        copy.expandtabs(tab_width) == real.expandtabs(tab_width) for copy, real in known.items()
    )


def _is_as_the_file(
    pairs: list[tuple[str, str]], repeated: list[tuple[str, str, str]], want: list[str]
) -> bool:
    """Whether the new text has the file's indentation, whatever the copy had."""
    differing = [(copy, real) for copy, real in pairs if copy != real]
    if not differing:
        return True
    first = next((indent_of(line) for line in want if line.strip()), "")
    copy, real = pairs[0]
    if copy != real and first in (copy, real):
        return first == real
    votes = [
        indent_of(new) == indent_of(have)
        for have, gave, new in repeated
        if indent_of(have) != indent_of(gave) and new.strip()
    ]
    if votes:
        return sum(votes) * 2 > len(votes)
    indents = [indent_of(line) for line in want if line.strip()]
    copied = {*"".join(copy for copy, _ in differing)}
    if foreign := copied.difference(*(real for _, real in differing)):
        return not any(foreign & {*indent} for indent in indents)
    return first == differing[0][1]


def _in_place_of(have: str, gave: str, want: str, indentation: _Indentation) -> str:
    """`want` in place of the line that `gave` copies: their common text stays as in the file."""
    if _keys([gave]) == _keys([want]):
        if indentation.known and indent_of(want) == indent_of(gave):
            return have
        return indentation.of(indent_of(want)) + have.lstrip(_BLANKS)
    body, copied, wanted = have.strip(_BLANKS), gave.strip(_BLANKS), want.strip(_BLANKS)
    if plain(body) == plain(copied):
        from rapidfuzz.distance import Postfix, Prefix

        begin = Prefix.similarity(plain(copied), plain(wanted))
        end = Postfix.similarity(plain(copied[begin:]), plain(wanted[begin:]))
        wanted = body[:begin] + wanted[begin : len(wanted) - end] + body[len(body) - end :]
    return indentation.of_line(indent_of(want) + wanted) + want[len(want.rstrip(_BLANKS)) :]


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Where a text is in a file, and its replacement."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class FoundSpans:
    """All places of one text. `but_for` says which differences were ignored; empty if none."""

    found: tuple[TextSpan, ...] = ()
    but_for: str = ""


def find_places(text: str, old: str, new: str) -> FoundSpans:
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
            return FoundSpans(found, but_for)
    for overlooked, pattern in _FOLDS:
        folded = _Folded(text, pattern)
        for but_for, given, wanted in readings:
            if found := tuple(_find_folded_places(folded, _Folded(given, pattern), wanted)):
                return FoundSpans(found, " and ".join(filter(None, (but_for, overlooked))))
    return FoundSpans()


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


def _find_folded_places(file: _Folded, sought: _Folded, new: str) -> Iterator[TextSpan]:
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
        replaced = merge_text(file.original[start:stop], old, new, starts_line=starts_line)
        yield TextSpan(start, stop, replaced)


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
    if numbers := _find_pasted_numbers(old):
        near = range(numbers[0], numbers[-1] + 1 + new.count("\n"))
        yield "line numbers", _without_numbers(old, near), _without_numbers(new, near)
    if kinds := frozenset(_ESCAPED.findall(old)):
        given = _undo_escapes(old, kinds)
        from rapidfuzz import fuzz

        is_new_escaped = fuzz.ratio(new, old) >= fuzz.ratio(new, given)
        if "\n" in new or not ("n" in kinds or _WRITTEN_LINE_END.search(new)):
            kinds = _ALL - {"n"}
        else:
            kinds = _ALL
        yield "extra backslashes", given, _undo_escapes(new, kinds) if is_new_escaped else new


def _find_pasted_numbers(text: str) -> list[int]:
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


def _exact_places(text: str, old: str, new: str) -> tuple[TextSpan, ...]:
    return tuple(TextSpan(at, at + len(old), new) for at in _occurrences(text, old))


def _undo_escapes(text: str, kinds: frozenset[str]) -> str:
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
    from rapidfuzz import fuzz  # 4 MB and 20 ms, and seldom needed

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
