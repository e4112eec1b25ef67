"""Finds text in a stack of blocks: counts it in the data and marks it on the rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from agent_tui.safe_text import safe_text
from agent_tui.text_search import SmartCaseText
from agent_tui.ui.styled_lines import Line
from agent_tui.ui.theme.palette import Palette
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    BashBlock,
    Block,
    BlockId,
    DividerBlock,
    NoticeBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    TurnBlock,
    UserBlock,
    WelcomeBlock,
)
from agent_tui.ui.transcript.found_text import Span, readable_text, spans_on_rows
from agent_tui.ui.transcript.stack import BlockStack, highlight

_MARKS = str.maketrans("", "", "*`~")


def count_found(wanted: SmartCaseText, block: Block, text: str) -> int:
    """How often `wanted` is in a block whose `readable_text` is `text`.

    A reply is kept as Markdown: what its marks part on the way is found without them.
    """
    found = wanted.count(text)
    is_answer = isinstance(block, NoticeBlock) and block.about == "answer"
    if not found and (is_answer or isinstance(block, AssistantBlock | SummaryBlock)):
        found = wanted.count(text.translate(_MARKS))
    return found


def block_label(block: Block) -> str:
    """The kind of a block, in words that follow "in"."""
    match block:
        case UserBlock():
            return "your message"
        case AssistantBlock():
            return "a reply"
        case ThinkingBlock():
            return "thinking"
        case ToolBlock():
            return f"the {safe_text(block.name[:20], keep_newlines=False)} call"
        case BashBlock():
            return "your command"
        case SummaryBlock():
            return "a summary"
        case NoticeBlock(about="answer"):
            return "an answer"
        case NoticeBlock() | TurnBlock() | DividerBlock() | WelcomeBlock():
            return "a notice"
        case _:
            assert_never(block)


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """One match: the `number`th (from 0) within the block `id`."""

    id: BlockId
    number: int


@dataclass(frozen=True, slots=True)
class FindState:
    """The state of a search: the current match counts from 1; 0 if there is none.

    `where` says what block it is in; not `is_counted`, there may be more than `total`.
    """

    text: str
    number: int = 0
    total: int = 0
    where: str = ""
    is_counted: bool = True


class Finder:
    """Counts, remembers and marks the matches of one text at a time.

    Reading the blocks takes some milliseconds for each thousand; so it is done in steps, and
    what was read is kept until the block changes or the finder goes.

    Args:
        stack: The blocks.
        palette: Returns the colours in use.
    """

    def __init__(self, stack: BlockStack, palette: Callable[[], Palette]) -> None:
        self._stack = stack
        self._palette = palette
        self._texts: dict[BlockId, tuple[Block, str]] = {}
        self._wanted: SmartCaseText | None = None
        self._counts: dict[BlockId, tuple[Block, int]] = {}
        self._found: dict[BlockId, int] = {}
        self._spans: dict[BlockId, tuple[object, list[tuple[Span, ...]]]] = {}
        self._version = -1
        self.current: FoundPlace | None = None
        self.is_counted = True

    @property
    def text(self) -> str:
        """What is looked for, in lower case unless case counts."""
        return self._wanted.text if self._wanted is not None else ""

    @property
    def is_stale(self) -> bool:
        """Whether blocks changed since they were counted."""
        return self._wanted is not None and self._version != self._stack.version

    def look_for(self, wanted: str) -> None:
        """Look for another text; nothing is found before `counting` ran."""
        self._wanted = SmartCaseText.of(wanted) if wanted else None
        self._counts.clear()
        self._found = {}
        self._spans.clear()
        self.current = None
        self.is_counted = self._wanted is None

    def counting(self) -> Iterator[None]:
        """Count all matches again, in steps; unchanged blocks cost almost nothing."""
        wanted, version = self._wanted, self._stack.version
        if wanted is None:
            return
        found: dict[BlockId, int] = {}
        for item in tuple(self._stack):
            count = self._count(wanted, item.id, item.block)
            if count:
                found[item.id] = count
            yield
        self._found, self._version, self.is_counted = found, version, True
        if self.current is not None and self.current.number >= found.get(self.current.id, 0):
            self.current = self._nearest(self.current.id)

    def _count(self, wanted: SmartCaseText, block_id: BlockId, block: Block) -> int:
        counted = self._counts.get(block_id)
        if counted is not None and counted[0] is block:
            return counted[1]
        known = self._texts.get(block_id)
        if known is None or known[0] is not block:
            known = self._texts[block_id] = (block, readable_text(block))
        count = count_found(wanted, block, known[1])
        self._counts[block_id] = (block, count)
        return count

    def state(self) -> FindState:
        """The state of the search."""
        number, current = 0, self.current
        if current is not None:
            before = (count for block_id, count in self._found.items() if block_id < current.id)
            number = sum(before) + current.number + 1
        index = None if current is None else self._stack.index(current.id)
        place = "" if index is None else block_label(self._stack[index].block)
        return FindState(self.text, number, sum(self._found.values()), place, self.is_counted)

    def start_at(self, block_id: BlockId) -> None:
        """Make the first match in or below a block the current one, else the last above it."""
        self.current = self._nearest(block_id)

    def _nearest(self, block_id: BlockId) -> FoundPlace | None:
        if not self._found:
            return None
        below = next((found for found in self._found if found >= block_id), None)
        if below is not None:
            return FoundPlace(below, 0)
        last = max(self._found)
        return FoundPlace(last, self._found[last] - 1)

    def step(self, direction: int) -> None:
        """Go to the next match, or with -1 to the previous one; round at the ends."""
        if self.current is None or not self._found:
            return
        here, number = self.current.id, self.current.number + direction
        if 0 <= number < self._found.get(here, 0):
            self.current = FoundPlace(here, number)
            return
        ids = list(self._found)
        place = (ids.index(here) if here in self._found else 0) + direction
        block_id = ids[place % len(ids)]
        self.current = FoundPlace(block_id, 0 if direction > 0 else self._found[block_id] - 1)

    def is_drawn(self, place: FoundPlace) -> bool:
        """Whether the rows of its block hold all matches that its data holds."""
        index = self._stack.index(place.id)
        return index is not None and len(self._spans_as_drawn(index)) >= self._found.get(
            place.id, 0
        )

    def row_of(self, place: FoundPlace) -> int:
        """The row of its block with the match; the first if no row has it."""
        index = self._stack.index(place.id)
        drawn = [] if index is None else self._spans_as_drawn(index)
        return drawn[min(place.number, len(drawn) - 1)][0][0] if drawn else 0

    def mark_line(self, index: int, row: int, line: Line) -> Line:
        """`line` with the matches on it marked, the current one most."""
        item = self._stack[index]
        if self._wanted is None or self._found.get(item.id, 0) == 0:
            return line
        drawn = self._spans_as_drawn(index)
        current = self.current if self.current is not None and self.current.id == item.id else None
        if not drawn:
            return self._mark_head(line) if current is not None and row == 0 else line
        palette = self._palette()
        chosen = -1 if current is None else min(current.number, len(drawn) - 1)
        for number, spans in enumerate(drawn):
            style = palette.found_current if number == chosen else palette.found
            for span_row, start, end in spans:
                if span_row == row:
                    line = replace(line, segments=highlight(line, (start, end), style))
        return line

    def _mark_head(self, line: Line) -> Line:
        """The head of the block with the current match, if no row can show it."""
        return replace(line, segments=highlight(line, (0, -1), self._palette().found))

    def _spans_as_drawn(self, index: int) -> list[tuple[Span, ...]]:
        """Matches on the rows of a block as it is drawn now."""
        assert self._wanted is not None
        block_id, rows = self._stack[index].id, self._stack.rows(index)
        known = self._spans.get(block_id)
        if known is None or known[0] is not rows:
            known = self._spans[block_id] = (rows, spans_on_rows(rows, self._wanted))
        return known[1]
