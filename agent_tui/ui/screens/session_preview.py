"""Messages beside a list, drawn as in the chat, with search matches marked."""

from collections.abc import Sequence
from dataclasses import replace

from rich.segment import Segment

from agent_tui.sessions.entries import Entry
from agent_tui.text_search import SmartCaseText, split_query
from agent_tui.ui.chat.compaction_blocks import readable_piece
from agent_tui.ui.chat.history_blocks import blocks_of
from agent_tui.ui.styled_lines import BLANK, Line
from agent_tui.ui.theme.palette import Palette
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    Block,
    NoticeBlock,
    SummaryBlock,
    UserBlock,
)
from agent_tui.ui.transcript.found_text import readable_text, spans_on_rows
from agent_tui.ui.transcript.markdown import markdown_parser
from agent_tui.ui.transcript.painter import BlockPainter
from agent_tui.ui.transcript.stack import highlight

_MOST_BLOCKS = 6
_MOST_ROWS = 14
_ROWS_BEFORE = 2


def last_blocks(entries: Sequence[Entry]) -> tuple[Block, ...]:
    """What was said last in `entries`, oldest of it first."""
    said = (
        block
        for block in blocks_of(entries)
        if (isinstance(block, UserBlock) and block.text.strip())
        or isinstance(block, AssistantBlock | SummaryBlock)
    )
    return tuple(said)[-_MOST_BLOCKS:]


def preview_lines(
    blocks: Sequence[Block],
    wanted: str,
    width: int,
    palette: Palette,
    *,
    snippet: str = "",
    most_rows: int = _MOST_ROWS,
) -> Sequence[Line]:
    """`blocks` as rows of `width` cells, each word of `wanted` marked.

    Args:
        blocks: The messages.
        wanted: The search text.
        width: In cells.
        palette: The colours.
        snippet: One line that stands before `blocks` where they do not hold all of the words.
        most_rows: Of one block; a longer one is shown from its first match on.
    """
    painter = BlockPainter(palette, markdown_parser(), width, show_thinking=False)
    words = [SmartCaseText.of(word.lower()) for word, _ in split_query(wanted) if word]
    read = "\n".join(map(readable_text, blocks))
    if snippet and not all(map(read.lower().count, (word.text for word in words))):
        snippet = readable_piece(snippet)
        cut = "" if snippet.startswith("…") else "… "
        blocks = (NoticeBlock("info", f"{cut}{snippet}"), *blocks)
    rows: list[Line] = []
    for block in blocks:
        drawn = painter.paint(block, is_expanded=True)
        rows += [BLANK, *_part(_mark_words(drawn, words, palette), drawn, most_rows, palette)]
    return rows[1:]


def _mark_words(
    rows: Sequence[Line], words: Sequence[SmartCaseText], palette: Palette
) -> list[Line]:
    """`rows` with every place of `words` in the colours of what is found."""
    marked = list(rows)
    for word in words:
        for spans in spans_on_rows(rows, word):
            for row, start, end in spans:
                segments = highlight(marked[row], (start, end), palette.found)
                marked[row] = replace(marked[row], segments=segments)
    return marked


def _part(
    marked: Sequence[Line], plain: Sequence[Line], most_rows: int, palette: Palette
) -> list[Line]:
    """At most `most_rows` of a block, among them its first match."""
    is_marked = (new is not old for new, old in zip(marked, plain, strict=True))
    first = next((row for row, found in enumerate(is_marked) if found), 0)
    start = max(first - _ROWS_BEFORE, 0) if first >= most_rows else 0
    shown = list(marked[start : start + most_rows])
    more = Line((Segment("   …", palette.muted),), is_decoration=True)
    before = [more] if start else []
    after = [more] if start + most_rows < len(marked) else []
    return [*before, *shown, *after]
