"""Read a session as the messages that the tiers may change."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agent_tui.compaction.tiers.model import UNEDITED, Unit
from agent_tui.config import CompactionSettings
from agent_tui.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from agent_tui.sessions.context import apply_edit, build_context, context_edits
from agent_tui.sessions.entries import Carryover, CustomMessageEntry, Entry, MessageEntry
from agent_tui.sessions.outputs import read_outputs
from agent_tui.sessions.replay.changes import in_force
from agent_tui.sessions.replay.marks import read_marks
from agent_tui.sessions.replay.normalise import ContextMessage, repair
from agent_tui.sessions.replay.pins import pin_of
from agent_tui.tokens import TokenCounter

_Written: TypeAlias = MessageEntry | CustomMessageEntry


@dataclass(frozen=True, slots=True)
class Units:
    """The messages of a context that can be changed, oldest first, and the size of the whole."""

    items: tuple[Unit, ...]
    tokens: int


def read_units(
    path: Sequence[Entry],
    *,
    carryover: Carryover | None,
    counter: TokenCounter,
    settings: CompactionSettings,
    window: int,
) -> Units:
    """The context of `path` as units; pinned, marked and generated messages are only counted."""
    context = build_context(path, summary_role=settings.summary_role, carryover=carryover)
    edits = context_edits(path)
    marks = read_marks(in_force(path))
    marked = marks.whole | marks.by_id.keys()
    written = {
        e.id: e
        for e in path
        if isinstance(e, MessageEntry | CustomMessageEntry)
        and pin_of(e) is None
        and e.id not in marked
    }
    found: list[tuple[_Written, Message, int, int]] = []
    total = 0
    for item in context.messages:
        tokens = written_tokens = counter.count_message(item.message)
        total += tokens
        entry = written.get(item.entry_id)
        if entry is None or type(message := _as_written(entry)) is not type(item.message):
            continue
        if message is not item.message:  # the context renamed its ids, edited it, or both
            message = repair(ContextMessage(entry.id, message)).message
            tokens = written_tokens = counter.count_message(message)
            if (edit := edits.get(entry.id)) and (left := apply_edit(message, edit)):
                tokens = counter.count_message(left)
        found.append((entry, message, tokens, written_tokens))
    messages = [message for _, message, _, _ in found]
    outputs = read_outputs(messages)
    is_said = [
        isinstance(entry, MessageEntry) and isinstance(message, UserMessage) and output is None
        for (entry, message, *_), output in zip(found, outputs, strict=True)
    ]
    protected = protected_positions(
        messages, [size for *_, size in found], is_said, settings, window
    )
    units = tuple(
        Unit(
            entry_id=entry.id,
            position=position,
            message=message,
            written_tokens=written_tokens,
            tokens=tokens,
            edited_tier=edits[entry.id].tier if entry.id in edits else UNEDITED,
            is_protected=position in protected,
            is_display_only=isinstance(entry, CustomMessageEntry) and entry.display,
            output=outputs[position],
        )
        for position, (entry, message, tokens, written_tokens) in enumerate(found)
    )
    return Units(units, total)


def _as_written(entry: _Written) -> Message:
    if isinstance(entry, MessageEntry):
        return entry.message
    return UserMessage(content=entry.content, timestamp=0)


def protected_positions(
    messages: Sequence[Message],
    tokens: Sequence[int],
    is_said: Sequence[bool],
    settings: CompactionSettings,
    window: int,
) -> frozenset[int]:
    """Positions of the last messages, at least the newest and the user's last one.

    They are the last ``protected_messages`` that fit ``keep_recent`` tokens together. The newest
    reply with its results, which the model may not have read yet, and the user's last message
    always belong to them.

    Args:
        messages: The conversation as it was written.
        tokens: Size of each message as originally written, so that edits do not move the border.
        is_said: Whether the user wrote the message (results can have the user's role too).
        settings: ``protected_messages`` and ``keep_recent_tokens``.
        window: Context window in tokens.
    """
    first = len(messages)
    room = settings.keep_recent(window)
    while first > 0 and len(messages) - first < settings.protected_messages:
        room -= tokens[first - 1]
        if room < 0:
            break
        first -= 1
    newest = range(min(first, newest_exchange(messages)), len(messages))
    said = [position for position, is_own in enumerate(is_said) if is_own]
    return frozenset((*newest, *said[-1:]))


def newest_exchange(messages: Sequence[Message]) -> int:
    """The index of the reply whose results come last, or of the newest message."""
    at = len(messages) - 1
    while at > 0 and isinstance(messages[at], ToolResultMessage):
        at -= 1
    return at if at >= 0 and isinstance(messages[at], AssistantMessage) else len(messages) - 1


def batch_id(path: Sequence[Entry], prefix: str = "") -> str:
    """An id that is the same for the same session and strategy, so that planning is repeatable."""
    newest = path[-1].id if path else ""
    return hashlib.blake2b(f"{prefix}{newest}".encode(), digest_size=4).hexdigest()
