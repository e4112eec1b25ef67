"""Unified diffs as styled lines: line numbers in the gutter, green and red surfaces."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from rich.segment import Segment
from rich.style import Style

from agent_tui.ui.palette import Palette
from agent_tui.ui.sanitise import safe_text
from agent_tui.ui.styled_lines import Line, clip, padded, prefixed, wrap

RowKind: TypeAlias = Literal["added", "removed", "unchanged", "gap", "file"]

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_SIGNS = {"added": "+", "removed": "-", "unchanged": " "}


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of a diff; `number` counts in the new file, for removed lines in the old one."""

    kind: RowKind
    text: str
    number: int | None = None


def parse_diff(diff: str, *, is_whole: bool = False) -> tuple[DiffRow, ...]:
    """The rows of a unified diff, headers turned into ``file`` and ``gap`` rows.

    What is not a unified diff comes back as unchanged rows without numbers. Overlong lines are
    cut, and the old file's name and remarks left out, unless `is_whole`: then nothing is lost.
    """
    return tuple(_rows(diff if is_whole else clip(diff), is_whole=is_whole))


def diff_stat(diff: str) -> tuple[int, int]:
    """Numbers of added and removed lines."""
    kinds = [row.kind for row in _rows(diff, is_whole=False)]
    return kinds.count("added"), kinds.count("removed")


def diff_lines(rows: Sequence[DiffRow], width: int, palette: Palette) -> list[Line]:
    """Rows of the screen for `rows`, filled to `width` cells; long lines wrap."""
    digits = len(str(max((row.number or 0 for row in rows), default=0)))
    lines: list[Line] = []
    for number, row in enumerate(rows):
        lines.extend(_draw(row, digits, width, palette, is_first=number == 0))
    return lines


def _rows(diff: str, *, is_whole: bool) -> Iterator[DiffRow]:
    old = new = old_end = new_end = 0
    for line in diff.split("\n"):
        if line.startswith("\\"):  # the remark that a file ends without a newline
            if is_whole:
                yield DiffRow("unchanged", line)
        elif old < old_end or new < new_end:
            row = _hunk_row(line, old, new)
            yield row
            old += row.kind != "added"
            new += row.kind != "removed"
        elif (match := _HUNK.match(line)) is not None:
            old, new = int(match[1]), int(match[3])
            old_end, new_end = old + int(match[2] or 1), new + int(match[4] or 1)
            yield DiffRow("gap", line[match.end() :].strip())
        elif line.startswith("+++ "):
            yield DiffRow("file", line if is_whole else line[4:].split("\t")[0])
        elif line.startswith(("--- ", "diff ", "index ")):
            if is_whole:
                yield DiffRow("file", line)
        elif line:
            yield DiffRow("unchanged", line)


def _hunk_row(line: str, old: int, new: int) -> DiffRow:
    """A line inside a hunk."""
    match line[:1]:
        case "+":
            return DiffRow("added", line[1:], new)
        case "-":
            return DiffRow("removed", line[1:], old)
        case _:
            return DiffRow("unchanged", line.removeprefix(" "), new)


def _draw(row: DiffRow, digits: int, width: int, palette: Palette, *, is_first: bool) -> list[Line]:
    text = safe_text(row.text, keep_newlines=False)
    if row.kind == "file":
        return wrap([Segment(text, palette.strong)], width, words=False)
    if row.kind == "gap":
        mark = f"{'⋯':>{digits}}  {text}".rstrip()
        skipped = wrap([Segment(mark, palette.hunk)], width, words=False)
        return [] if is_first and not text else [replace(skipped[0], is_decoration=True)]
    style, gutter = _styles(row.kind, palette)
    number = "" if row.number is None else str(row.number)
    head = Segment(f"{number:>{digits}} {_SIGNS[row.kind]} ", gutter)
    rest = Segment(" " * len(head.text), gutter)
    body = wrap([Segment(text, style)], width - len(head.text), words=False)
    return [padded(line, width, style) for line in prefixed(body, [head], [rest])]


def _styles(kind: RowKind, palette: Palette) -> tuple[Style, Style]:
    if kind == "added":
        return palette.added, palette.added_gutter
    if kind == "removed":
        return palette.removed, palette.removed_gutter
    return palette.unchanged, palette.unchanged_gutter
