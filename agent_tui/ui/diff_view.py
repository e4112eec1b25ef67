"""Unified diffs as styled lines: numbers, surfaces, changed words, the colours of the code."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import Literal, TypeAlias

from rich.segment import Segment
from rich.style import Style

from agent_tui.safe_text import safe_text
from agent_tui.ui.styled_lines import Line, clip, pad_line, prefix_lines, wrap
from agent_tui.ui.theme.palette import Palette

RowKind: TypeAlias = Literal["added", "removed", "unchanged", "gap", "file"]

Marks: TypeAlias = tuple[tuple[int, int], ...]
"""First and last character of each changed piece of a line, in order."""

Inks: TypeAlias = Callable[[str, str], Sequence[Sequence[Segment]]]
"""Colours the lines of a text by the name of its file (`CodePainter.inks`)."""

_MAX_COLOURED_ROWS = 400
_MAX_COLOURED_CHARS = 40_000
"""Of one diff: the rest keeps its surfaces, without the colours of its language."""

_ITALIC = Style(italic=True)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_SIGNS = {"added": "+", "removed": "-", "unchanged": " "}


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of a diff; `number` counts in the new file, for removed lines in the old one.

    `path` is its file, empty if the diff does not name it; `note` says of a file
    that it is new or deleted.
    """

    kind: RowKind
    text: str
    number: int | None = None
    path: str = ""
    note: str = ""


def parse_diff(diff: str, *, is_whole: bool = False) -> tuple[DiffRow, ...]:
    """The rows of a unified diff, headers turned into ``file`` and ``gap`` rows.

    A file is one row with its name. What is not a unified diff comes back as unchanged rows
    without numbers. Overlong lines are cut, and another old name and remarks left out, unless
    `is_whole`: then nothing is lost.
    """
    rows = _rows(diff if is_whole else clip(diff), is_whole=is_whole)
    return tuple(_with_joined_heads(rows))


def diff_stat(diff: str) -> tuple[int, int]:
    """Numbers of added and removed lines."""
    kinds = [row.kind for row in _rows(diff, is_whole=False)]
    return kinds.count("added"), kinds.count("removed")


def fold_context(rows: Sequence[DiffRow], most: int) -> tuple[tuple[DiffRow, ...], int]:
    """At most `most` of `rows`, and how many lines of code are not among them.

    Unchanged lines go first, those farthest from a change before others; each gap says where. If
    the changed lines alone are too many, the first are returned.
    """
    distances = _distances(rows)
    kept = tuple(rows)
    for farthest in sorted(set(distances), reverse=True):
        if len(kept) <= most:
            break
        if farthest < len(rows):  # else it has no change, as what is no diff
            kept = tuple(_without_far_rows(rows, distances, farthest))
    shown = kept[:most]
    return shown, _count_code(rows) - _count_code(shown)


def _distances(rows: Sequence[DiffRow]) -> list[int]:
    """Of each row, how many rows away the nearest change is within its hunk; 0 for headers."""
    distances = [0 if row.kind != "unchanged" else len(rows) for row in rows]
    for order in (range(len(rows)), range(len(rows) - 1, -1, -1)):
        distance = len(rows)
        for number in order:
            kind = rows[number].kind
            if kind in ("added", "removed"):
                distance = 0
            elif kind != "unchanged":
                distance = len(rows)
            else:
                distance += 1
                distances[number] = min(distances[number], distance)
    return distances


def _without_far_rows(
    rows: Sequence[DiffRow], distances: Sequence[int], farthest: int
) -> Iterator[DiffRow]:
    """The rows that are at most `farthest` from a change, with a gap between others."""
    is_gap_due, has_gap = False, True
    for row, distance in zip(rows, distances, strict=True):
        if distance <= farthest:
            is_head = row.kind in ("gap", "file")
            if is_gap_due and not is_head:
                yield DiffRow("gap", "", path=row.path)
            yield row
            is_gap_due, has_gap = False, is_head
        else:
            is_gap_due, has_gap = is_gap_due or not has_gap, True
    if is_gap_due:
        yield DiffRow("gap", "", path=rows[-1].path)


def _count_code(rows: Iterable[DiffRow]) -> int:
    return sum(row.kind not in ("gap", "file") for row in rows)


def diff_lines(
    rows: Sequence[DiffRow], width: int, palette: Palette, inks: Inks | None = None
) -> list[Line]:
    """Rows of the screen for `rows`, filled to `width` cells; long lines wrap.

    With `inks` text has the colours of its language where the palette has surfaces to tell
    added from removed lines; without surfaces the colour of the text has to tell that.
    """
    digits = _digits(rows)
    texts = [safe_text(row.text, keep_newlines=False) for row in rows]
    marks = mark_changed_words(rows, texts)
    coloured: Mapping[int, Sequence[Segment]] = {}
    if inks is not None and palette.added.bgcolor is not None:
        coloured = _colour_rows(rows, texts, inks)
    lines: list[Line] = []
    for number, (row, text) in enumerate(zip(rows, texts, strict=True)):
        if row.kind in ("gap", "file"):
            is_first = number == 0 or rows[number - 1].kind == "file"
            lines.extend(_head(row, text, digits, width, palette, is_first=is_first))
        else:
            runs = coloured.get(number, (Segment(text, Style()),))
            lines.extend(draw_row(row, runs, marks.get(number, ()), digits, width, palette))
    return lines


def _digits(rows: Sequence[DiffRow]) -> int:
    return len(str(max((row.number or 0 for row in rows), default=0)))


def mark_changed_words(rows: Sequence[DiffRow], texts: Sequence[str]) -> dict[int, Marks]:
    """The changed words of the rows that have some: removed rows against the added after them."""
    marks: dict[int, Marks] = {}
    stretches = [(kind, list(group)) for kind, group in groupby(range(len(rows)), _kind_in(rows))]
    for (kind, removed), (next_kind, added) in pairwise(stretches):
        if (kind, next_kind) == ("removed", "added"):
            found = find_changed_words([texts[n] for n in removed], [texts[n] for n in added])
            marks.update(zip(removed, found[0], strict=True))
            marks.update(zip(added, found[1], strict=True))
    return marks


def _kind_in(rows: Sequence[DiffRow]) -> Callable[[int], RowKind]:
    return lambda number: rows[number].kind


def _colour_rows(
    rows: Sequence[DiffRow], texts: Sequence[str], inks: Inks
) -> dict[int, Sequence[Segment]]:
    """The coloured runs of rows: each stretch is read as the new file, then as the old one."""
    coloured: dict[int, Sequence[Segment]] = {}
    left = _MAX_COLOURED_CHARS
    numbers = range(min(len(rows), _MAX_COLOURED_ROWS))
    for is_code, stretch in groupby(numbers, lambda n: rows[n].kind not in ("gap", "file")):
        members = list(stretch)
        path = rows[members[0]].path
        for other in ("added", "removed") if is_code and path else ():
            side = [number for number in members if rows[number].kind != other]
            code = "\n".join(texts[number] for number in side)
            left -= len(code)
            if left < 0:
                return coloured
            for number, runs in zip(side, inks(code, path), strict=False):
                if "".join(run.text for run in runs) == texts[number]:
                    coloured[number] = runs
    return coloured


def _with_joined_heads(rows: Iterable[DiffRow]) -> Iterator[DiffRow]:
    """`rows` with one head a file, which has the note of its first change."""
    head: DiffRow | None = None
    for row in rows:
        if head is not None and row == replace(head, text=f"+++ {head.text[4:]}", path=row.path):
            head = replace(head, text=head.text[4:])
            continue
        if head is not None:
            yield replace(head, note=row.note if row.kind == "gap" else "")
        head = row if row.kind == "file" else None
        if head is None:
            yield row
    if head is not None:
        yield head


def _rows(diff: str, *, is_whole: bool) -> Iterator[DiffRow]:
    old = new = old_end = new_end = 0
    path = ""
    for line in diff.split("\n"):
        if line.startswith("\\"):  # the remark that a file ends without a newline
            if is_whole:
                yield DiffRow("unchanged", line)
        elif old < old_end or new < new_end:
            row = replace(_hunk_row(line, old, new), path=path)
            yield row
            old += row.kind != "added"
            new += row.kind != "removed"
        elif (match := _HUNK.match(line)) is not None:
            old, new = int(match[1]), int(match[3])
            old_end, new_end = old + int(match[2] or 1), new + int(match[4] or 1)
            note = "new file" if match[0].startswith("@@ -0,0 ") else ""
            note = "deleted" if match[0].endswith(" +0,0 @@") else note
            yield DiffRow("gap", line[match.end() :].strip(), note=note)
        elif line.startswith("+++ "):
            path = path if line.startswith("+++ /dev/null") else line[4:].split("\t")[0]
            yield DiffRow("file", line if is_whole else line[4:].split("\t")[0])
        elif line.startswith(("--- ", "diff ", "index ")):
            path = line[4:].split("\t")[0] if line.startswith("--- ") else path
            if is_whole:
                yield DiffRow("file", line)
        elif line:
            yield DiffRow("unchanged", line)


def _hunk_row(line: str, old: int, new: int) -> DiffRow:
    """One line inside a hunk."""
    match line[:1]:
        case "+":
            return DiffRow("added", line[1:], new)
        case "-":
            return DiffRow("removed", line[1:], old)
        case _:
            return DiffRow("unchanged", line.removeprefix(" "), new)


def _head(
    row: DiffRow, text: str, digits: int, width: int, palette: Palette, *, is_first: bool
) -> list[Line]:
    if row.kind == "file":
        note = Segment(f"  {row.note}" if row.note else "", palette.muted)
        return wrap([Segment(text, palette.strong), note], width, words=False)
    mark = f"{'⋯':>{digits}}  {text}".rstrip()
    skipped = wrap([Segment(mark, palette.hunk)], width, words=False)
    return [] if is_first and not text else [replace(skipped[0], is_decoration=True)]


def draw_row(
    row: DiffRow,
    runs: Sequence[Segment],
    marks: Marks,
    digits: int,
    width: int,
    palette: Palette,
) -> list[Line]:
    """A line of code: its number in `digits` cells, its sign, and `runs` with `marks`, wrapped."""
    style, word, gutter = _styles(row.kind, palette)
    number = "" if row.number is None else str(row.number)
    head = Segment(f"{number:>{digits}} {_SIGNS[row.kind]} ", gutter)
    rest = Segment(" " * len(head.text), gutter)
    if row.kind != "unchanged":  # a faint ink cannot be read on a surface
        runs = [Segment(run.text, _ITALIC) if run.style == palette.comment else run for run in runs]
    text = list(_split_at_marks(runs, marks, style, word))
    body = wrap(text, width - len(head.text), words=False)
    return [pad_line(line, width, style) for line in prefix_lines(body, [head], [rest])]


def _split_at_marks(
    runs: Sequence[Segment], marks: Marks, surface: Style, word: Style
) -> Iterator[Segment]:
    """`runs` on `surface`, split at the borders of `marks`, which are drawn on `word`."""
    borders = sorted({border for mark in marks for border in mark})
    begin = 0
    for text, ink, _ in runs:
        end = begin + len(text)
        cuts = [begin, *(border for border in borders if begin < border < end), end]
        for start, stop in pairwise(cuts):
            style = surface + ink if ink is not None else surface
            if any(first <= start and stop <= last for first, last in marks):
                style += word
            yield Segment(text[start - begin : stop - begin], style)
        begin = end


def _styles(kind: RowKind, palette: Palette) -> tuple[Style, Style, Style]:
    """Of a line of code: its surface, that of its changed words, its gutter."""
    if kind == "added":
        return palette.added, palette.added_word, palette.added_gutter
    if kind == "removed":
        return palette.removed, palette.removed_word, palette.removed_gutter
    return palette.unchanged, palette.unchanged, palette.unchanged_gutter


_LEAST_ALIKE = 0.4
"""Share of their characters that two lines must have in common to be one line that changed.

Below it nearly everything would be marked, which says less than no marks.
"""

MAX_PAIRINGS = 900
"""Pairs of lines that are compared in one change (30 lines by 30).

In a larger change, lines are paired in order if there are as many new as old ones.
"""

MAX_CHARS = 8_000
_MAX_WORDS = 400
_MAX_WORD_PAIRS = 4_000
"""Of one pair of lines: what takes more comparing is marked from first to last difference."""

_WORDS = re.compile(r"\w+|\s+|.")
_PARTS = re.compile(r"[^\W_]+|\S")


def find_changed_words(
    removed: Sequence[str], added: Sequence[str]
) -> tuple[list[Marks], list[Marks]]:
    """The marks of each removed and each added line of one change.

    Lines are paired in their order, so that the paired ones are as alike as can be; the others
    have no marks, nor have lines that are the same but for their indent.
    """
    old: list[Marks] = [()] * len(removed)
    new: list[Marks] = [()] * len(added)
    if not (old and new) or (len(old) * len(new) > MAX_PAIRINGS and len(old) != len(new)):
        return old, new
    old_words = [_WORDS.findall(line[:MAX_CHARS]) for line in removed]
    new_words = [_WORDS.findall(line[:MAX_CHARS]) for line in added]
    for left, right in _pairs(old_words, new_words):
        old[left], new[right] = _compare(old_words[left], new_words[right])
    return old, new


def _pairs(old: Sequence[Sequence[str]], new: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Pairs of lines in order with the greatest sum of likeness (as in a longest subsequence)."""
    counted_old, counted_new = [_parts("".join(w)) for w in old], [_parts("".join(w)) for w in new]
    if len(old) * len(new) > MAX_PAIRINGS:
        couples = enumerate(zip(counted_old, counted_new, strict=True))
        yield from ((number, number) for number, couple in couples if _alike(*couple))
        return
    alike = [[_alike(left, right) for right in counted_new] for left in counted_old]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for left in range(len(old) - 1, -1, -1):
        for right in range(len(new) - 1, -1, -1):
            best[left][right] = max(
                best[left + 1][right],
                best[left][right + 1],
                alike[left][right] + best[left + 1][right + 1],
            )
    left = right = 0
    while left < len(old) and right < len(new):
        taken = alike[left][right]
        if taken and best[left][right] == taken + best[left + 1][right + 1]:
            yield left, right
            left, right = left + 1, right + 1
        elif best[left][right] == best[left + 1][right]:
            left += 1
        else:
            right += 1


def _parts(line: str) -> Counter[str]:
    """The number of characters of each name part and sign in a line."""
    characters: Counter[str] = Counter()
    for part in _PARTS.findall(line):
        characters[part] += len(part)
    return characters


def _alike(left: Counter[str], right: Counter[str]) -> float:
    """The share of common characters of two lines; 0 if it is too small."""
    total = left.total() + right.total()
    share = 2 * (left & right).total() / total if total else 0.0
    return share if share >= _LEAST_ALIKE else 0.0


def _compare(old: Sequence[str], new: Sequence[str]) -> tuple[Marks, Marks]:
    """The changed pieces of two lines given by their words."""
    first = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    if first is None:
        first = min(len(old), len(new))
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    old_middle, new_middle = old[first : len(old) - last], new[first : len(new) - last]
    changes = [(0, len(old_middle), 0, len(new_middle))]
    if old_middle and new_middle and _is_cheap(old_middle, new_middle):
        matcher = SequenceMatcher(None, old_middle, new_middle, autojunk=False)
        changes = [codes[1:] for codes in matcher.get_opcodes() if codes[0] != "equal"]
    return (
        _marks(old, [(first + start, first + end) for start, end, _, _ in changes]),
        _marks(new, [(first + start, first + end) for _, _, start, end in changes]),
    )


def _is_cheap(old: Sequence[str], new: Sequence[str]) -> bool:
    if max(len(old), len(new)) > _MAX_WORDS:
        return False
    counted = Counter(new)
    return sum(counted[word] for word in old) <= _MAX_WORD_PAIRS


def _marks(words: Sequence[str], changes: Sequence[tuple[int, int]]) -> Marks:
    """Runs of words as runs of characters; what only a space parts is one piece."""
    marks: list[tuple[int, int]] = []
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word))
    line = "".join(words)
    is_indent = bool(words) and words[0].isspace()
    for start, end in changes:
        if is_indent and start == 0:
            start = 1
        if start >= end:
            continue
        begin = offsets[start]
        if marks and line[marks[-1][1] : begin].isspace():
            begin = marks.pop()[0]
        marks.append((begin, offsets[end]))
    return tuple(marks)
