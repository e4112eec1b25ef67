"""Tables that fit: columns share the width they have, long cells wrap."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from agent_tui.ui.styled_lines import BLANK, Line, Runs, wrap

_GAP = 3
_MIN_COLUMN = 4


def table_lines(
    rows: Sequence[Sequence[Runs]], right: Sequence[bool], width: int, *, rule: Style
) -> list[Line]:
    """Rows of a table whose first row is its head, with a rule below it.

    Args:
        rows: Cells as styled runs, each row as long as the first.
        right: For each column, whether it is aligned to the right.
        width: Cells the table may fill.
        rule: Style of the rule.
    """
    if not rows or not rows[0]:
        return []
    cells = [[_one_line(cell) for cell in row] for row in rows]
    natural = [max(map(_cells, column)) for column in zip(*cells, strict=False)]
    widths = fit_columns(natural, width - _GAP * (len(natural) - 1))
    if sum(widths) + _GAP * (len(widths) - 1) > width:
        return _as_list(cells, width)
    lines: list[Line] = []
    for number, row in enumerate(cells):
        lines.extend(_row(row, widths, right))
        if number == 0:
            dashes = (" " * _GAP).join("─" * size for size in widths)
            lines.append(Line((Segment(dashes, rule),), is_decoration=True))
    return lines


def fit_columns(natural: Sequence[int], room: int) -> list[int]:
    """Column widths for `room` cells: narrow columns keep theirs, wide ones share the rest."""
    widths = [max(1, size) for size in natural]
    if sum(widths) <= room:
        return widths
    fitted = [0] * len(widths)
    left, columns = room, sorted(range(len(widths)), key=lambda column: widths[column])
    for done, column in enumerate(columns):
        share = left // (len(columns) - done)
        fitted[column] = max(min(_MIN_COLUMN, widths[column]), min(widths[column], share))
        left -= fitted[column]
    return fitted


def _row(cells: Sequence[Runs], widths: Sequence[int], right: Sequence[bool]) -> list[Line]:
    wrapped = [wrap(cell, size) for cell, size in zip(cells, widths, strict=False)]
    lines: list[Line] = []
    for number in range(max(map(len, wrapped))):
        segments: list[Segment] = []
        for column, parts in enumerate(wrapped):
            part = parts[number] if number < len(parts) else BLANK
            room = Segment(" " * (widths[column] - part.cells))
            is_right = column < len(right) and right[column]
            segments += [room, *part.segments] if is_right else [*part.segments, room]
            if column < len(wrapped) - 1:
                segments.append(Segment(" " * _GAP))
        lines.append(Line(tuple(segment for segment in segments if segment.text)))
    return lines


def _as_list(cells: Sequence[Sequence[Runs]], width: int) -> list[Line]:
    """Too many columns for the width: each row becomes lines of head and value."""
    head, *body = cells
    lines: list[Line] = []
    for row in body:
        if lines:
            lines.append(BLANK)
        for name, value in zip(head, row, strict=False):
            lines.extend(wrap([*name, Segment(": "), *value], width))
    return lines or wrap([run for cell in head for run in (*cell, Segment(" "))], width)


def _one_line(runs: Runs) -> Runs:
    return [Segment(run.text.replace("\n", " "), run.style) for run in runs]


def _cells(runs: Runs) -> int:
    return sum(cell_len(run.text) for run in runs)
