"""Selecting text with the mouse: addresses that survive new rows, and what copying gives."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection

from agent_tui.ui.styled_lines import Line, text_to_copy
from agent_tui.ui.transcript.stack import BlockStack

_ROW_BITS = 24
_WORD = re.compile(r"[\w./~@:+-]+|\s+|.")


def address(block_id: int, row: int) -> int:
    """A number for a row that orders rows from top to bottom and ignores what is above.

    Rows are numbered within their block, so a selection stays on its text while blocks
    above or below change their height.
    """
    return block_id << _ROW_BITS | row


def text_in_selection(stack: BlockStack, selection: Selection) -> str:
    """The source text between the ends of a selection."""
    chunks: list[str] = []
    for index in _blocks_in_selection(stack, selection):
        rows = list(_cut_rows(stack, index, selection))
        text = text_to_copy(rows)
        if not text and not rows:
            continue
        if chunks:
            chunks.append("\n" * (1 + stack.gap(index)))
        chunks.append(text)
    return "".join(chunks)


def highlight(line: Line, span: tuple[int, int], style: Style) -> tuple[Segment, ...]:
    """The segments of a row with `style` on its selected text; decoration stays as it is.

    Args:
        line: The row.
        span: First and last character as of `Selection.get_span`, -1 for the end.
        style: What selected text looks like.
    """
    start, end = _text_span(line, span)
    segments: list[Segment] = []
    position = 0
    for text, base, control in line.segments:
        cuts = sorted(
            {0, len(text), *(c - position for c in (start, end) if 0 < c - position < len(text))}
        )
        for left, right in pairwise(cuts):
            is_selected = start <= position + left and position + right <= end
            selected = (base or Style()) + style if is_selected else base
            segments.append(Segment(text[left:right], selected, control))
        position += len(text)
    return tuple(segments)


def word_at(line: Line, column: int) -> tuple[int, int]:
    """First and last character of the word (path, name) at a character of a row."""
    for match in _WORD.finditer(line.row):
        if match.end() > column:
            return _text_span(line, match.span())
    return _text_span(line, (column, column))


def block_selection(block_id: int, last_row: int) -> Selection:
    """All rows of a block."""
    end = Offset(1 << _ROW_BITS, address(block_id, last_row))
    return Selection(Offset(0, address(block_id, 0)), end)


def _blocks_in_selection(stack: BlockStack, selection: Selection) -> range:
    start, end = selection
    first = 0 if start is None else stack.nearest(start.y >> _ROW_BITS)
    last = len(stack) - 1 if end is None else stack.nearest(end.y >> _ROW_BITS)
    return range(first, last + 1)


def _cut_rows(stack: BlockStack, index: int, selection: Selection) -> Iterator[Line]:
    """The selected rows of a block, the first and last without what is not selected."""
    block_id = stack[index].id
    for number, line in enumerate(stack.rows(index)):
        span = selection.get_span(address(block_id, number))
        if span is None or line.is_decoration:
            continue
        start, end = _text_span(line, span)
        yield replace(line, lead=start, tail=len(line.row) - end)


def _text_span(line: Line, span: tuple[int, int]) -> tuple[int, int]:
    """`span` without decoration, its end never before its start."""
    size = len(line.row)
    last = size - line.tail
    start = min(max(span[0], line.lead), last)
    end = last if span[1] == -1 else min(span[1], last)
    return start, max(start, end)
