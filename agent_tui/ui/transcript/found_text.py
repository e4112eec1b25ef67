"""The text of blocks as a search reads it, and where it stands on the rows."""

from collections.abc import Sequence
from typing import TypeAlias, assert_never

from agent_tui.commands.event_lines import turn_facts_line
from agent_tui.safe_text import safe_output, safe_text
from agent_tui.text_search import SmartCaseText
from agent_tui.ui.diff_view import parse_diff
from agent_tui.ui.styled_lines import Line, clip
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    BashBlock,
    Block,
    DividerBlock,
    NoticeBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    TurnBlock,
    UserBlock,
    WelcomeBlock,
)

Span: TypeAlias = tuple[int, int, int]
"""A row of a block, and the first and the last character of a piece of it."""


def readable_text(block: Block) -> str:
    """All text of a block, folded or not, made safe as it is when drawn."""
    match block:
        case UserBlock() | ThinkingBlock() | NoticeBlock():
            return safe_text(clip(block.text))
        case AssistantBlock():
            return safe_text(clip(f"{block.markdown}\n{block.note}"))
        case ToolBlock():
            return _tool(block)
        case BashBlock():
            return f"{safe_text(clip(block.command))}\n{safe_output(clip(block.output))}"
        case SummaryBlock():
            return safe_text(clip(f"{block.note}\n{block.summary}"))
        case TurnBlock():
            return safe_text(turn_facts_line(block.facts, len(block.facts.changed)))
        case DividerBlock():
            return safe_text(clip(block.title))
        case WelcomeBlock():
            rows = () if block.is_begun else (*block.hints, *block.sessions)
            pairs = (*block.facts, *((row.text, row.about) for row in rows))
            return "\n".join(safe_text(clip(text)) for text in (block.title, *map(" ".join, pairs)))
        case _:
            assert_never(block)


def spans_on_rows(rows: Sequence[Line], wanted: SmartCaseText) -> list[tuple[Span, ...]]:
    """Each place of `wanted` on drawn rows; wrapped rows count as the one line they are."""
    found: list[tuple[Span, ...]] = []
    line: list[tuple[int, int, Line]] = []
    size = 0
    for number, row in enumerate(rows):
        if row.joint is None or row.is_decoration:
            found += _spans_on_line(line, wanted)
            line, size = [], 0
        if not row.is_decoration:
            size += len(row.joint or "") if line else 0
            line.append((number, size, row))
            size += len(row.text)
    return found + _spans_on_line(line, wanted)


def _spans_on_line(
    line: Sequence[tuple[int, int, Line]], wanted: SmartCaseText
) -> list[tuple[Span, ...]]:
    """Places on one line of the source, given its rows, each with where its text begins."""
    if not line:
        return []
    text = line[0][2].text + "".join((row.joint or "") + row.text for _, _, row in line[1:])
    found: list[tuple[Span, ...]] = []
    for first in wanted.places(text):
        last = first + len(wanted.text)
        spans = tuple(
            (number, row.lead + max(first - begin, 0), row.lead + min(last - begin, len(row.text)))
            for number, begin, row in line
            if first < begin + len(row.text) and last > begin
        )
        found.append(spans)
    return [spans for spans in found if spans]


def _tool(block: ToolBlock) -> str:
    name = safe_text(clip(block.name), keep_newlines=False)
    title = safe_text(clip(block.title), keep_newlines=False).removeprefix(name).strip()
    parts = [f"{name} {title}"]
    if "\n" in block.command.strip():
        parts.append(safe_output(clip(block.command.strip())))
    if block.summary and not title.endswith(block.summary):
        parts.append(safe_text(clip(block.summary), keep_newlines=False))
    parts += (safe_text(row.text) for row in parse_diff(block.diff) if row.kind != "file")
    parts.append(safe_output(clip(block.output)))
    parts += (safe_text(clip(todo.text), keep_newlines=False) for todo in block.todos)
    return "\n".join(parts)
