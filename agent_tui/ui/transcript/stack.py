"""The blocks of a chat from top to bottom: where each row is, and the text that is selected."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection

from agent_tui.ui.styled_lines import Line, row_at_offset, text_offset, text_to_copy
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    Block,
    BlockId,
    ToolBlock,
    TurnBlock,
)
from agent_tui.ui.transcript.markdown import MarkdownStream
from agent_tui.ui.transcript.painter import BlockPainter, estimate_rows

_TRAILING_ROWS = 1
"""Blank rows below the last block."""

_FIRST_ID: BlockId = 1 << 30
"""Blocks that are put above the first one have smaller ids, which stay positive."""

_MAX_KEPT_ROWS = 3_000
"""Drawn rows kept in memory; blocks far from the screen are drawn again when seen.

More would save little time and cost much: each row is a handful of objects, and a full garbage
collection stops the program for as long as it takes to visit them all.
"""


@dataclass(slots=True)
class Item:
    """A block and what is known of its drawing.

    `height` is exact when `is_measured`, a guess before; `rows` may be dropped and drawn again.
    What `is_past` was said before a compaction that began another session: it is dimmed.
    """

    id: BlockId
    block: Block
    height: int
    is_expanded: bool = False
    is_measured: bool = False
    is_past: bool = False
    rows: list[Line] | None = None
    stream: MarkdownStream | None = None


@dataclass(frozen=True, slots=True)
class RowAnchor:
    """A row that stays findable: `row` counts from the blank rows above the block `id`.

    `offset` is the source text before the row, for when the block wraps differently later.
    """

    id: BlockId
    row: int
    gap: int
    offset: int


class BlockStack:
    """Blocks in order, with the row each begins at."""

    def __init__(self, painter: BlockPainter) -> None:
        self._painter = painter
        self._items: list[Item] = []
        self._ids: list[BlockId] = []
        self._tops: list[int] = []
        self._gaps: list[int] = []
        self._valid = 0
        self._total = 0
        self._next_id: BlockId = _FIRST_ID
        self._lowest_id: BlockId = _FIRST_ID
        self._kept_rows = 0
        self.version = 0
        """Grows whenever a block comes, goes or becomes another."""

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Item:
        return self._items[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    @property
    def painter(self) -> BlockPainter:
        """What draws the blocks."""
        return self._painter

    @property
    def total_rows(self) -> int:
        """Rows of the whole chat."""
        self._place_all()
        return self._total

    def index(self, block_id: BlockId) -> int | None:
        """The index of the block, or None if it is gone."""
        index = bisect_left(self._ids, block_id)
        return index if index < len(self._ids) and self._ids[index] == block_id else None

    def nearest(self, block_id: BlockId) -> int:
        """The index of the block or, if it is gone, of the one that followed it."""
        return min(bisect_left(self._ids, block_id), max(0, len(self._ids) - 1))

    def append(self, block: Block) -> Item:
        """Put a block at the end."""
        height = estimate_rows(block, self._painter.width)
        item = Item(self._next_id, block, height)
        self._next_id += 1
        self._items.append(item)
        self._ids.append(item.id)
        self.version += 1
        return item

    def prepend(self, blocks: Sequence[Block]) -> Sequence[Item]:
        """Put dimmed blocks above all others."""
        first = self._lowest_id - len(blocks)
        width = self._painter.width
        items = [
            Item(first + number, block, estimate_rows(block, width), is_past=True)
            for number, block in enumerate(blocks)
        ]
        self._items[:0] = items
        self._ids[:0] = [item.id for item in items]
        self._lowest_id = first
        self._valid = 0
        self.version += 1
        return items

    def remove_above(self, index: int) -> None:
        """Remove all blocks above the one at `index`."""
        for item in self._items[:index]:
            self._forget_rows(item)
        del self._items[:index], self._ids[:index]
        self._valid = 0
        self.version += 1

    def dim_above(self, index: int) -> None:
        """Dim all blocks above the one at `index`; their heights stay."""
        for item in self._items[:index]:
            if not item.is_past:
                item.is_past = True
                self._forget_rows(item)

    @property
    def first_id(self) -> BlockId | None:
        """The block at the top."""
        return self._ids[0] if self._ids else None

    def replace(self, index: int, block: Block) -> None:
        """Put other data in the place of a block."""
        self._items[index].stream = None
        self.grow(index, block)
        self.invalidate(index)

    def grow(self, index: int, block: Block) -> None:
        """Replace a block's data; the caller draws or sets its rows."""
        self._items[index].block = block
        self.version += 1

    def remove(self, index: int) -> None:
        """Remove a block."""
        self.version += 1
        self._forget_rows(self._items[index])
        del self._items[index], self._ids[index]
        self._valid = min(self._valid, index)

    def clear(self) -> None:
        """Remove all blocks; their ids are not used again."""
        self.version += 1
        self._items.clear()
        self._ids.clear()
        self._valid = self._kept_rows = 0

    def invalidate(self, index: int) -> None:
        """Draw the block again when it is next visible."""
        item = self._items[index]
        self._forget_rows(item)
        item.is_measured = False

    def restyle(self, painter: BlockPainter, *, keeps_heights: bool) -> None:
        """Draw everything again with `painter` when it becomes visible."""
        self._painter = painter
        for item in self._items:
            item.rows = None
            item.is_measured = item.is_measured and keeps_heights
            if item.stream is not None and isinstance(item.block, AssistantBlock):
                item.stream = painter.stream()
                item.stream.feed(item.block.markdown)
        self._kept_rows = 0

    def rows(self, index: int) -> Sequence[Line]:
        """The rows of a block, drawn now if need be."""
        item = self._items[index]
        if item.rows is None:
            for _ in self.drawing(index):
                pass
        return item.rows or ()

    def drawing(self, index: int) -> Iterator[None]:
        """Draw a block in bounded steps; a caller short of time may stop between two."""
        item = self._items[index]
        block = item.block
        painter = self._painter.dimmed if item.is_past else self._painter
        if isinstance(block, AssistantBlock):
            stream = item.stream or painter.stream()
            if item.stream is None:
                stream.feed(block.markdown)
            yield from stream.steps()
            rows = stream.rows(is_end=item.stream is None) + painter.mark_rows(block)
        else:
            rows = painter.paint(block, is_expanded=item.is_expanded)
        self.set_rows(index, rows)

    def set_rows(self, index: int, rows: list[Line]) -> None:
        """Store the drawn rows of a block, whose height is exact from now on."""
        item = self._items[index]
        self._forget_rows(item)
        self._kept_rows += len(rows)
        item.rows = rows
        item.is_measured = True
        if item.height != len(rows):
            item.height = len(rows)
            self._valid = min(self._valid, index)

    def drop_rows_far_from(self, first: int, last: int) -> None:
        """Free drawn rows outside the blocks `first` to `last` when too many are kept."""
        if self._kept_rows > _MAX_KEPT_ROWS:
            for index, item in enumerate(self._items):
                if not first <= index <= last and item.stream is None:
                    self._forget_rows(item)

    def top(self, index: int) -> int:
        """The row the blank rows above a block begin at."""
        self._place_all()
        return self._tops[index]

    def gap(self, index: int) -> int:
        """Blank rows above a block."""
        self._place_all()
        return self._gaps[index]

    def at(self, y: int) -> tuple[int, int]:
        """The block at a row, and the row counted from the blank rows above that block.

        Below the last block it is that block, and a row past its end. Needs a block.
        """
        self._place_all()
        index = bisect_right(self._tops, y) - 1
        index = max(0, min(index, len(self._items) - 1))
        return index, y - self._tops[index]

    def visible(self, y: int, height: int) -> range:
        """Indices of the blocks that touch the rows from `y`."""
        if not self._items or height <= 0:
            return range(0)
        return range(self.at(y)[0], self.at(y + height - 1)[0] + 1)

    def place(self, y: int) -> RowAnchor | None:
        """The row at `y` so that it can be found again after changes."""
        if not self._items:
            return None
        index, row = self.at(y)
        item, gap = self._items[index], self._gaps[index]
        offset = text_offset(item.rows, row - gap) if item.rows and row > gap else 0
        return RowAnchor(item.id, row, gap, offset)

    def find(self, place: RowAnchor, *, is_rewrapped: bool) -> int:
        """Where the row of `place` is now. With `is_rewrapped` its text decides."""
        if not self._items:
            return 0
        index = self.nearest(place.id)
        if is_rewrapped and place.offset:
            row = row_at_offset(self.rows(index), place.offset)
        else:
            row = place.row - place.gap
        return max(0, self.top(index) + self.gap(index) + row)

    def measure(self, y: int, height: int) -> None:
        """Draw what touches the rows from `y` until nothing there is a guess."""
        while guesses := [i for i in self.visible(y, height) if not self._items[i].is_measured]:
            for index in guesses:
                self.rows(index)

    def _forget_rows(self, item: Item) -> None:
        if item.rows is not None:
            self._kept_rows -= len(item.rows)
            item.rows = None

    def _place_all(self) -> None:
        """Bring the first row of every block up to date, from the first changed one on."""
        first = self._valid
        if first == len(self._items) == len(self._tops):
            return
        del self._tops[first:], self._gaps[first:]
        previous = next(
            (self._items[i] for i in range(first - 1, -1, -1) if self._items[i].height), None
        )
        y = 0
        if first:
            y = self._tops[-1] + self._gaps[-1] + self._items[first - 1].height
        for item in self._items[first:]:
            gap = _gap(previous, item)
            self._tops.append(y)
            self._gaps.append(gap)
            y += gap + item.height
            if item.height:
                previous = item
        self._valid = len(self._items)
        self._total = y + _TRAILING_ROWS if y else 0


def _gap(above: Item | None, item: Item) -> int:
    """Blank rows between two blocks: none between tool calls of one line."""
    if not item.height:
        return 0
    if above is None:
        return 1
    both_tools = isinstance(above.block, ToolBlock) and isinstance(item.block, ToolBlock)
    return 0 if both_tools and above.height == 1 else 1


def can_toggle(block: Block) -> bool:
    """Whether a block has more to show than it shows at first."""
    if isinstance(block, ToolBlock):
        return bool(block.output or block.diff or block.todos or block.command)
    return not isinstance(block, AssistantBlock | TurnBlock)


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
