"""Changes of the context: batches of edits, compactions, and undoing them.

The log only grows. A change is undone by one more entry that names it; a replay only uses
`in_force` of the path.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TypeGuard

from pydantic import Field

from agent_tui.messages import Stored
from agent_tui.sessions.entries import (
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    Entry,
    custom_entry,
    custom_value,
)
from agent_tui.sessions.replay.marks import is_mark
from agent_tui.sessions.replay.pins import is_unpin
from agent_tui.sessions.replay.scope_entries import ScopePending, compression_of, mark_of

UNDO = "context_undo"
"""Custom type of the entry that undoes changes; its data names their ids."""

EDIT_REPORT = "context_edits"
"""Custom type of the entry after a batch of edits that reports what they did."""

UNDONE = "The compaction was undone."
MADE_WITHOUT_MODEL = "written without a model"

_DONE_BY_TIER: Mapping[int, str] = {
    0: "thinking and repeated outputs left out",
    1: "long outputs and arguments shortened",
    2: "old outputs reduced to one line each",
    3: "old messages rewritten in fewer words",
}
_SIZE_KEYS = frozenset({"before", "after"})
_STILL_THERE = "Nothing is lost: the session keeps every word, and `recall` brings any of it back."


class _UndoMark(Stored):
    entries: tuple[str, ...] = ()


class EditReport(Stored):
    """The effect of one batch of edits. Sizes in tokens of the whole request, as measured.

    Args:
        batch: The batch id of the edits.
        reason: Why they were made, as in `CompactionEntry`.
        freed: Estimated tokens that each tier freed.
        messages: Number of messages that each tier changed.
        strategy: The strategy that made them; empty for the tiers.
        statistics: Counts of changed messages, with readable names.
        note: The same for the user, and what did not go as planned; may be empty.
    """

    batch: str
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    freed: Mapping[int, int] = Field(default_factory=dict[int, int])
    messages: Mapping[int, int] = Field(default_factory=dict[int, int])
    strategy: str = ""
    statistics: Mapping[str, int] = Field(default_factory=dict[str, int])
    note: str = ""


def report_entry(report: EditReport) -> CustomEntry:
    """`report` as the entry that ends its batch."""
    return custom_entry(EDIT_REPORT, report)


def report_of(entry: Entry) -> EditReport | None:
    """The report in `entry`; None for any other entry or an unreadable one."""
    return custom_value(entry, EDIT_REPORT, EditReport)


def undo_mark(entry_ids: Sequence[str]) -> CustomEntry:
    """An entry that undoes the changes `entry_ids`."""
    return custom_entry(UNDO, _UndoMark(entries=tuple(entry_ids)))


def is_undo_mark(entry: Entry) -> TypeGuard[CustomEntry]:
    """Whether `entry` undoes changes."""
    return isinstance(entry, CustomEntry) and entry.custom_type == UNDO


def undone_by(mark: CustomEntry) -> tuple[str, ...]:
    """Ids of the changes that `mark` undoes.

    They are in another session if a compaction that began that session was undone.
    """
    read = custom_value(mark, UNDO, _UndoMark)
    return read.entries if read is not None else ()


def in_force(path: Sequence[Entry]) -> Sequence[Entry]:
    """`path` (root to leaf) without compactions and edits that were undone."""
    undone = {entry_id for entry in path if is_undo_mark(entry) for entry_id in undone_by(entry)}
    if not undone:
        return path
    return tuple(entry for entry in path if entry.id not in undone or not _can_be_undone(entry))


def newest_compaction(path: Sequence[Entry]) -> CompactionEntry | None:
    """The compaction in force, if there is one on `path`."""
    return next((e for e in reversed(in_force(path)) if isinstance(e, CompactionEntry)), None)


def newest_change(path: Sequence[Entry]) -> tuple[str, ...]:
    """Ids of the newest change in force on `path`: compaction, scope summary or batch of edits.

    A batch is written at once, so it ends at the next older entry that is not part of it. Edits
    copied when a session began are older than its first compaction, although they come after it,
    and have no report there. Empty if nothing was changed.
    """
    batch: list[ContextEditEntry] = []
    for entry in reversed(in_force(path)):
        if isinstance(entry, ContextEditEntry) and (not batch or entry.batch == batch[0].batch):
            batch.append(entry)
        elif batch:
            break
        elif isinstance(entry, CompactionEntry):
            return (*_edits_made_with(entry, path), entry.id)
        elif _was_summed_up_here(entry, path):
            return (entry.id,)
    first = path[0] if path else None
    if batch and isinstance(first, CompactionEntry) and batch[0].timestamp < first.timestamp:
        # Times alone are not enough: the clock may have been set back since the session began.
        reports = (report_of(entry) for entry in path)
        if all(report is None or report.batch != batch[0].batch for report in reports):
            return (first.id,)
    return tuple(edit.id for edit in reversed(batch))


def _edits_made_with(compaction: CompactionEntry, path: Sequence[Entry]) -> tuple[str, ...]:
    """Ids of the edits of kept messages written right before `compaction`, in order."""
    batch = compaction.details.batch
    before = takewhile(lambda entry: entry.id != compaction.id, path)
    return tuple(
        entry.id
        for entry in before
        if batch and isinstance(entry, ContextEditEntry) and entry.batch == batch
    )


def changes_context(entry: Entry) -> bool:
    """Whether `entry` changes the context before it."""
    return _can_be_undone(entry) or is_undo_mark(entry) or is_unpin(entry) or is_mark(entry)


def _can_be_undone(entry: Entry) -> bool:
    if isinstance(entry, CompactionEntry | ContextEditEntry):
        return True
    return compression_of(entry) is not None


def _was_summed_up_here(entry: Entry, path: Sequence[Entry]) -> bool:
    """Whether `entry` summarizes a scope of this session.

    A summary that ``/compact`` copied into the session is older than the compaction before it, and
    its pending mark was not copied.
    """
    if (end := compression_of(entry)) is None:
        return False
    marks = map(mark_of, path)
    return any(isinstance(mark, ScopePending) and mark.scope == end.scope for mark in marks)


def describe_edits(messages: Mapping[int, int], freed: Mapping[int, int]) -> str:
    """What a compaction without a summary did, as Markdown: a line for each tier that edited.

    Args:
        messages: Number of messages that each tier changed.
        freed: Approximate tokens that each tier freed.
    """
    lines = [
        _tier_line(changed, done, freed.get(tier, 0))
        for tier, done in _DONE_BY_TIER.items()
        if (changed := messages.get(tier, 0))
    ]
    return "\n".join([*lines, "", _STILL_THERE] if lines else [_STILL_THERE])


def describe_statistics(strategy: str, statistics: Mapping[str, int]) -> str:
    """What a strategy did in one sentence: ``hybrid: 12 tool results, 3 user messages ...``.

    Empty if no strategy is named, as for the tiers. Sizes are left out, as they are shown beside
    it.
    """
    if not strategy:
        return ""
    counts = [
        f"{count:,} {key.replace('_', ' ')}"
        for key, count in statistics.items()
        if count and key not in _SIZE_KEYS
    ]
    return f"{strategy}: {', '.join(counts)}." if counts else f"{strategy}."


def _tier_line(changed: int, done: str, freed: int) -> str:
    about = f" (about {freed:,} tokens)" if freed > 0 else ""
    return f"- {changed:,} message{'s' * (changed != 1)}: {done}{about}"
