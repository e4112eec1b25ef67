"""The chat as plain text, for the terminal's own scrollback and for copying."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from agent_tui.attachments import plan_approved_by
from agent_tui.commands.command_output import excerpt, excerpt_lines
from agent_tui.commands.event_lines import turn_facts_line
from agent_tui.safe_text import safe_output, safe_text
from agent_tui.ui.styled_lines import clip
from agent_tui.ui.theme.palette import Palette
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
from agent_tui.ui.transcript.code import CODE_EDGE
from agent_tui.ui.transcript.markdown import markdown_parser
from agent_tui.ui.transcript.painter import MARGIN, BlockPainter

_APPROVAL = "I approve this plan."


def plain_texts(blocks: Sequence[Block], columns: int, *, newest_first: bool) -> Iterator[str]:
    """The blocks with text as plain text, `columns` cells wide; a plan stands there once."""
    painter = BlockPainter(Palette(), markdown_parser(), columns + MARGIN, show_thinking=False)
    said = [block.markdown for block in blocks if isinstance(block, AssistantBlock)]
    for block in reversed(blocks) if newest_first else blocks:
        plan = plan_approved_by(block.text).strip() if isinstance(block, UserBlock) else ""
        if plan and any(plan in text for text in said):
            block = UserBlock(_APPROVAL)
        if text := plain_text(block, painter).strip("\n"):
            yield text


def plain_text(block: Block, painter: BlockPainter) -> str:
    """A block without colours and without folds; thinking and the welcome are left out."""
    match block:
        case UserBlock():
            return _user(block.text, painter)
        case AssistantBlock():
            return _markdown_text(block.markdown, painter)
        case ToolBlock():
            return _tool(block)
        case BashBlock():
            return f"$ {safe_text(block.command)}\n{safe_output(block.output)}".rstrip()
        case SummaryBlock():
            return f"--- context compacted ---\n{safe_text(block.summary)}"
        case NoticeBlock():
            return safe_text(block.text)
        case TurnBlock():
            return safe_text(turn_facts_line(block.facts))
        case DividerBlock():
            return f"--- {safe_text(block.title, keep_newlines=False)} ---"
        case ThinkingBlock() | WelcomeBlock():
            return ""
        case _:
            assert_never(block)


def _user(said: str, painter: BlockPainter) -> str:
    text = safe_text(said)
    if plan := plan_approved_by(said):
        text = f"{_APPROVAL}\n\n{_markdown_text(plan, painter)}"
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _markdown_text(markdown: str, painter: BlockPainter) -> str:
    """Markdown as it is drawn; paragraphs are left for the terminal to wrap, code has no edge."""
    lines: list[str] = []
    for row in painter.paint(AssistantBlock(markdown), is_expanded=True):
        lead = row.row[MARGIN : row.lead].replace(CODE_EDGE, " " * len(CODE_EDGE))
        if row.joint is not None and not lead:
            lines[-1] += f"{row.joint}{row.text}"
        else:
            lines.append(f"{lead}{row.text}".rstrip())
    return "\n".join(lines)


def _tool(block: ToolBlock) -> str:
    title = safe_text(clip(block.title or block.name), keep_newlines=False)
    head = f"* {title}"
    if block.summary and block.summary not in title:
        head += f"  {safe_text(clip(block.summary), keep_newlines=False)}"
    if block.status not in ("ok", "running"):
        head += f"  ({block.status})"
    parts = [head, safe_text(block.diff).rstrip("\n")]
    if block.printed_lines is not None:
        has_failed = block.status == "error"
        found = excerpt(block.output, lines=block.printed_lines, has_failed=has_failed)
        parts += (f"    {line}" for line in excerpt_lines(found))
    return "\n".join(filter(None, parts))
