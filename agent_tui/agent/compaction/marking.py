"""Marking messages of the present conversation: kept through compactions, or left out."""

import asyncio
from collections.abc import Sequence

from agent_tui.agent.conversation import Conversation
from agent_tui.compaction.plan import read_live
from agent_tui.errors import SessionError
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.replay.changes import in_force
from agent_tui.sessions.replay.marks import Mark, mark_entry, read_marks


async def mark_message(conversation: Conversation, entry_id: str, mark: Mark | None) -> None:
    """Write what is to become of a message; None takes that back.

    Raises:
        SessionError: It is not in the context, or what is kept would leave no room.
    """
    log = conversation.log
    path = log.path_entries()
    seen = {item.entry_id for item in conversation.context().messages}
    marked = read_marks(in_force(path)).by_id.keys()
    is_message = any(entry.id == entry_id and isinstance(entry, MessageEntry) for entry in path)
    if not is_message or entry_id not in seen | marked:
        raise SessionError("Only messages that are in the context now can be marked.")
    entry = mark_entry(entry_id, mark)
    if mark in ("keep", "pin"):
        await asyncio.to_thread(_require_room, conversation, (*path, entry))
    log.append(entry)


def _require_room(conversation: Conversation, path: Sequence[Entry]) -> None:
    """Refuse a mark with which a compaction could not come down to its target."""
    ratio = conversation.services.ratios.ratio(conversation.model.name)
    live = read_live(in_force(path), conversation.services.counter)
    needed = round((live.pinned_tokens + conversation.overhead_tokens()) * ratio)
    target = conversation.limits.target
    if needed > target:
        raise SessionError(
            f"Not marked: with the system prompt, what is kept would take {needed:,} tokens, and a "
            f"compaction leaves {target:,}.",
            "Clear another mark, or raise compaction.target.",
        )
