"""Scopes as blocks of the chat: the same when they happen and when the log is read again."""

from agent_tui.events import ScopeLeft
from agent_tui.sessions.replay.scope_entries import (
    ScopeEnter,
    ScopeExit,
    ScopeMark,
)
from agent_tui.ui.chat.compaction_blocks import readable_summary
from agent_tui.ui.transcript.blocks import Block, DividerBlock, SummaryBlock


def entered_block(label: str) -> DividerBlock:
    """The line where a scope begins."""
    return DividerBlock(f"start: {label}")


def left_blocks(event: ScopeLeft) -> tuple[Block, ...]:
    """The line where a scope ends, before it what stands for the scope, to be unfolded."""
    end = DividerBlock(f"end: {event.label}")
    if not event.summary:
        return (end,)
    sizes = f"{event.tokens_before:,} -> {event.tokens_after:,} tokens"
    return (SummaryBlock(readable_summary(event.summary), 0, 0, f"summarised ({sizes})"), end)


def mark_blocks(entry_id: str, mark: ScopeMark) -> tuple[Block, ...]:
    """The lines for a mark that the log tells of."""
    match mark:
        case ScopeEnter(label=label):
            return (entered_block(label),)
        case ScopeExit():
            return left_blocks(
                ScopeLeft(entry_id, mark.label, mark.summary, mark.tokens_before, mark.tokens_after)
            )
        case _:
            return ()
