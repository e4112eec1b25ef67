"""Puts new text in place of text that was copied with small differences.

What the new text repeats of the copy stays as in the file; new lines get the file's style of
indentation.
"""

from dataclasses import dataclass
from difflib import SequenceMatcher
from fractions import Fraction
from typing import Final

from rapidfuzz.distance import Postfix, Prefix

_PLAIN: Final = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{FIGURE SPACE}", " "),
    }
)


_BLANKS = " \t"
_TAB_WIDTHS: Final = (4, 2, 8, 3, 1, 5, 6, 7)


def plain(text: str) -> str:
    """`text` at the same length, with typographic quotes, dashes and blanks made plain."""
    return text.translate(_PLAIN)


def indent_of(line: str) -> str:
    """The blanks and tabs at the start of a line."""
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def merged(found: str, old: str, new: str, *, starts_line: bool) -> str:
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
    indentation = _Indentation.learned(rows if starts_line else rows[1:], repeated, want)
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
    def learned(
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
        begin = Prefix.similarity(plain(copied), plain(wanted))
        end = Postfix.similarity(plain(copied[begin:]), plain(wanted[begin:]))
        wanted = body[:begin] + wanted[begin : len(wanted) - end] + body[len(body) - end :]
    return indentation.of_line(indent_of(want) + wanted) + want[len(want.rstrip(_BLANKS)) :]
