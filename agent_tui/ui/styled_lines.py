"""Lines of styled text for line-API views: wrapping, prefixes, and what copying gives back."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style

Runs: TypeAlias = Sequence[Segment]
"""One logical line of text as styled pieces, before wrapping."""

MAX_LINE_CHARS = 10_000
"""Characters of one logical line that are laid out; the rest is counted, not drawn."""

_WIDE = (
    "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f"
    "\uff01-\uff60\uffe0-\uffe6\U00020000-\U0003fffd"
)
_CLOSING = "、。，．！？）」』】〉》：；"
_WORDS = re.compile(rf"\s+|[{_WIDE}][{_CLOSING}]*|[^\s{_WIDE}]+")
"""Where a line may break: at spaces, and around East Asian characters."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the screen.

    `lead` and `tail` count characters of decoration (bars, gutters, padding) at its ends that
    copying leaves out. `joint` is the text that wrapping took out between the row above and this
    one, or None where this row starts a new line of the source. A row that `is_decoration`
    (a rule, a fold mark) is not copied at all. A click on a row that `toggles` folds or unfolds
    its block; a click on one with a `draft` takes that.
    """

    segments: tuple[Segment, ...]
    lead: int = 0
    tail: int = 0
    joint: str | None = None
    is_decoration: bool = False
    toggles: bool = False
    draft: str = ""

    @property
    def row(self) -> str:
        """Everything on the row, decoration included."""
        return "".join(segment.text for segment in self.segments)

    @property
    def text(self) -> str:
        """The row's share of the source text."""
        row = self.row
        return row[self.lead : len(row) - self.tail]

    @property
    def cells(self) -> int:
        """Width on the screen."""
        return sum(cell_len(segment.text) for segment in self.segments)


BLANK = Line(())


def clip(text: str, most: int = MAX_LINE_CHARS) -> str:
    """`text` with its lines cut after `most` characters, each cut saying how much is missing."""
    if len(text) <= most:
        return text
    return "\n".join(_clip_line(line, most) for line in text.split("\n"))


def _clip_line(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    return f"{line[:most]} … +{len(line) - most:,} characters"


def wrap(runs: Runs, width: int, *, words: bool = True) -> list[Line]:
    """Rows of at most `width` cells (at least 2) that hold the text of `runs`.

    With `words` a row ends at a space or beside an East Asian character where it can; else it
    is cut where it is full. Trailing spaces of the logical line are left out with `words`.
    """
    width = max(2, width)
    text = "".join(run.text for run in runs)
    if not text.isascii():
        runs = _whole_clusters(runs)
    if words:
        text = text.rstrip()
    if cell_len(text) <= width:
        return [Line(tuple(_slice(runs, 0, len(text))))]
    spans = _word_spans(text, width) if words else _chop(text, 0, len(text), width)
    lines: list[Line] = []
    previous_end: int | None = None
    for start, end in spans:
        joint = None if previous_end is None else text[previous_end:start]
        lines.append(Line(tuple(_slice(runs, start, end)), joint=joint))
        previous_end = end
    return lines


def wrap_text(text: str, style: Style, width: int, *, words: bool = True) -> list[Line]:
    """Rows for plain text that may hold newlines, in one style."""
    rows: list[Line] = []
    for line in clip(text).split("\n"):
        rows.extend(wrap([Segment(line, style)], width, words=words))
    return rows


def prefix_lines(lines: Iterable[Line], first: Runs, rest: Runs | None = None) -> list[Line]:
    """`lines` with decoration before them: `first` on the first row, `rest` on the others."""
    heads = (tuple(first), tuple(first if rest is None else rest))
    sizes = tuple(sum(len(segment.text) for segment in head) for head in heads)
    return [
        replace(
            line,
            segments=heads[number > 0] + line.segments,
            lead=line.lead + sizes[number > 0],
        )
        for number, line in enumerate(lines)
    ]


def pad_line(line: Line, width: int, style: Style, label: str = "") -> Line:
    """`line` padded to `width` cells, with `label` at its right end if it fits."""
    room = width - line.cells
    if room <= 0:
        return line
    filler = " " * room
    if label and room >= cell_len(label) + 2:
        filler = " " * (room - cell_len(label) - 1) + label + " "
    return replace(
        line,
        segments=(*line.segments, Segment(filler, style)),
        tail=line.tail + len(filler),
    )


def text_to_copy(lines: Iterable[Line]) -> str:
    """The source text of rows: wrapped rows are joined again, decoration is left out."""
    pieces: list[str] = []
    for line in lines:
        if line.is_decoration:
            continue
        if pieces:
            pieces.append("\n" if line.joint is None else line.joint)
        pieces.append(line.text)
    return "".join(pieces)


def text_offset(lines: Sequence[Line], row: int) -> int:
    """The number of characters of source text before the row."""
    return sum(len(line.text) + len(line.joint or "") for line in lines[:row])


def row_at_offset(lines: Sequence[Line], offset: int) -> int:
    """The row that holds the source text at `offset` characters (see `text_offset`)."""
    passed = 0
    for row, line in enumerate(lines):
        passed += len(line.text) + len(line.joint or "")
        if passed > offset:
            return row
    return max(0, len(lines) - 1)


def _whole_clusters(runs: Runs) -> Runs:
    """`runs` with no border inside a character cluster, whose parts have no width alone."""
    whole: list[Segment] = []
    for run in runs:
        if not run.text:
            continue
        if whole and (whole[-1].text[-1] == "\u200d" or not cell_len(run.text[0])):
            whole[-1] = Segment(whole[-1].text + run.text, whole[-1].style)
        else:
            whole.append(run)
    return whole


def _slice(runs: Runs, start: int, end: int) -> Iterator[Segment]:
    """The characters from `start` to `end` of `runs`."""
    position = 0
    for run in runs:
        run_end = position + len(run.text)
        if run_end > start and position < end:
            piece = run.text[max(0, start - position) : end - position]
            if piece:
                yield Segment(piece, run.style)
        position = run_end


def _word_spans(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Start and end of each row; the characters between two rows are spaces."""
    row_start = row_end = used = 0
    for match in _WORDS.finditer(text):
        start, end = match.span()
        size = cell_len(match.group())
        if match.group().isspace():
            used += size
            continue
        if used + size > width and start > row_start:
            yield row_start, row_end
            row_start, used = start, 0
        if size > width:
            *full, (row_start, _) = _chop(text, start, end, width)
            yield from full
            size = cell_len(text[row_start:end])
        row_end = end
        used += size
    yield row_start, row_end


def _chop(text: str, start: int, end: int, width: int) -> list[tuple[int, int]]:
    """Rows cut at the full width, never inside a grapheme cluster."""
    spans: list[tuple[int, int]] = []
    row_start, used = start, 0
    for left, _, size in split_graphemes(text[start:end])[0]:
        if used + size > width:
            spans.append((row_start, start + left))
            row_start, used = start + left, 0
        used += size
    spans.append((row_start, end))
    return spans
