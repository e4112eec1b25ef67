"""The chat as plain text, for the terminal's own scrollback and for copying."""

from typing import assert_never

from agent_tui.commands.command_output import excerpt, excerpt_lines
from agent_tui.commands.event_lines import turn_facts_line
from agent_tui.safe_text import safe_output, safe_text
from agent_tui.ui.styled_lines import clip
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


def plain_text(block: Block) -> str:
    """A block without colours and without folds; thinking and the welcome are left out."""
    match block:
        case UserBlock():
            return "\n".join(f"> {line}" for line in safe_text(block.text).split("\n"))
        case AssistantBlock():
            return safe_text(block.markdown).strip("\n")
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


def _tool(block: ToolBlock) -> str:
    title = safe_text(clip(block.title or block.name), keep_newlines=False)
    head = f"* {title}"
    if block.summary:
        head += f"  {safe_text(clip(block.summary), keep_newlines=False)}"
    if block.status not in ("ok", "running"):
        head += f"  ({block.status})"
    parts = [head, safe_text(block.diff).rstrip("\n")]
    if block.printed_lines is not None:
        has_failed = block.status == "error"
        found = excerpt(block.output, lines=block.printed_lines, has_failed=has_failed)
        parts += (f"    {line}" for line in excerpt_lines(found))
    return "\n".join(filter(None, parts))
