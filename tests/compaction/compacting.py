"""Compacting without a model in tests, and looking at what is left."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agent_tui.compaction.outcome import CompactionResult, Outcome
from agent_tui.compaction.request import CompactionRequest, ContextSizes
from agent_tui.compaction.transcript import escape_tags
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.messages import UserMessage
from agent_tui.providers.base import ModelRef, Provider
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Carryover, CompactionEntry, Entry, MessageEntry
from agent_tui.sessions.replay.changes import in_force
from agent_tui.sessions.replay.normalise import ContextMessage
from agent_tui.sessions.replay.pins import pins_on
from agent_tui.tokens import TokenCounter
from tests.compaction.writer import compact


def compacted(
    path: Sequence[Entry],
    counter: TokenCounter,
    *,
    settings: CompactionSettings,
    window: int,
    cwd: str = "/project",
    target_tokens: int = 0,
    previous: Carryover | None = None,
    writer: Provider | None = None,
) -> CompactionResult | None:
    """What comes of `path`; None where there is nothing to compact."""
    request = request_for(
        path,
        settings=settings,
        window=window,
        cwd=cwd,
        target_tokens=target_tokens,
        previous=previous,
    )
    try:
        return asyncio.run(compact(writer, counter, request, settings=settings))
    except CompactionError:
        return None


def is_shown(text: str, result: CompactionResult) -> bool:
    """Whether `text` stands word for word in the summary, or in a message of the user's below."""
    kept = (one.message for one in result.kept_entries if isinstance(one, MessageEntry))
    below = "\n".join(one.text for one in kept if isinstance(one, UserMessage))
    return escape_tags(text) in result.summary or text in below


def request_for(
    path: Sequence[Entry],
    *,
    settings: CompactionSettings,
    window: int,
    cwd: str = "/project",
    tokens_before: int = 10_000,
    target_tokens: int = 0,
    previous: Carryover | None = None,
) -> CompactionRequest:
    """What asks for a summary of `path`."""
    return CompactionRequest(
        path=tuple(path),
        previous=previous,
        model=ModelRef("scripted/one"),
        cwd=Path(cwd),
        settings=settings,
        sizes=ContextSizes(window=window, used=tokens_before, target=target_tokens),
    )


def placed(result: CompactionResult, entry_id: str = "compaction") -> CompactionEntry:
    """The compaction as the log would append it."""
    entry = result.entry("threshold")
    first = result.first_kept_entry_id or entry_id
    return entry.model_copy(update={"id": entry_id, "first_kept_entry_id": first})


def in_place(
    path: Sequence[Entry], result: CompactionResult, entry_id: str = "compaction"
) -> tuple[Entry, ...]:
    """`path` after `result` was appended, the edits of what stays before the compaction."""
    edits = [
        edit.model_copy(update={"id": f"{entry_id}-{number}"})
        for number, edit in enumerate(result.edits)
    ]
    return (*path, *edits, placed(result, entry_id))


def edited(path: Sequence[Entry], plan: Outcome) -> tuple[Entry, ...]:
    """`path` after the edits of `plan` were appended, as the log would do it."""
    first = len(path)
    edits = [edit.model_copy(update={"id": f"edit{n}"}) for n, edit in enumerate(plan.edits, first)]
    return (*path, *edits)


def seen(path: Sequence[Entry]) -> tuple[ContextMessage, ...]:
    """What the model sees of `path`."""
    return build_context(path).messages


def size(path: Sequence[Entry], counter: TokenCounter) -> int:
    """Tokens of the context of `path`."""
    return counter.count_messages(item.message for item in seen(path))


def assert_newest_stay(
    path: Sequence[Entry], after: Sequence[Entry], result: CompactionResult
) -> None:
    """That behind the summary what is pinned and the newest messages of `path` stand as they were.

    Those of which the result says so have become shorter.
    """
    edited_ids = {edit.target_id for edit in result.edits}
    kept = seen(after)[1:]
    first = result.first_kept_entry_id
    before = seen(path)
    ids = [item.entry_id for item in before]
    pinned = {entry.id for entry in pins_on(in_force(path)).values()}
    place = ids.index(first) if first in ids else len(ids)
    stays = [item for at, item in enumerate(before) if at >= place or item.entry_id in pinned]
    assert told([item for item in kept if item.entry_id not in edited_ids]) == told(
        [item for item in stays if item.entry_id not in edited_ids]
    )
    assert edited_ids <= {item.entry_id for item in stays}


def told(items: Sequence[ContextMessage]) -> list[tuple[str, str, str]]:
    """Who said what in which entry; ids of calls depend on what else is in the context."""
    return [(item.entry_id, item.message.role, item.message.text) for item in items]
