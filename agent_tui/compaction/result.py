"""A finished compaction that is not written yet, and its entries."""

from dataclasses import dataclass

from agent_tui.compaction.curation.answer import Choice
from agent_tui.compaction.draft import CompactionRequest, Draft
from agent_tui.messages import Usage
from agent_tui.sessions.entries import (
    Carryover,
    CompactionDetails,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    MessageEntry,
    new_entry_id,
    timestamp_after,
)
from agent_tui.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result of a compaction. Nothing is written until the caller appends it.

    Args:
        summary: A model's notes, if any, between the blocks that code writes.
        first_kept_entry_id: The first entry that stays; empty if none does.
        kept_entries: The entries that stay, unchanged, and `edits`.
        edits: Edits of messages that stay, made for this compaction.
        tokens_before: The caller's measured usage.
        tokens_after: The same for the context afterwards; always less.
        estimated_after: `tokens_after` in our own estimate.
        carryover: What the next session needs to know.
        summarised_by: Name of the model that chose; empty without one.
        is_fallback: Whether no model chose what stays.
        usage: The usage of all requests; None without any.
        note: One line for the user if something did not go as planned; else empty.
        focus: What the user wanted the summary to focus on.
        summarised: Number of messages that the summary replaces.
    """

    summary: str
    first_kept_entry_id: str
    kept_entries: tuple[Entry, ...]
    edits: tuple[ContextEditEntry, ...]
    tokens_before: int
    tokens_after: int
    estimated_after: int
    carryover: Carryover
    summarised_by: str
    is_fallback: bool
    usage: Usage | None
    note: str = ""
    focus: str = ""
    summarised: int = 0

    def entry(self, reason: str) -> CompactionEntry:
        """The compaction as one entry, to be appended to the session it was made from.

        It is dated later than every message it keeps, whatever the clock says, because the dates
        decide whether a kept reply's usage is outdated.
        """
        messages = (entry.message for entry in self.kept_entries if isinstance(entry, MessageEntry))
        return CompactionEntry(
            timestamp=timestamp_after(message.timestamp for message in messages),
            summary=self.summary,
            first_kept_entry_id=self.first_kept_entry_id,
            tokens_before=self.tokens_before,
            tokens_after=self.tokens_after,
            details=CompactionDetails(
                read_files=self.carryover.read_files,
                modified_files=self.carryover.modified_files,
                ledger=self.carryover.ledger,
                summarised_by=self.summarised_by,
                is_fallback=self.is_fallback,
                note=self.note,
                batch=self.edits[0].batch if self.edits else "",
            ),
            reason=reason,
            focus=self.focus or None,
            usage=self.usage,
        )


def result_of(
    request: CompactionRequest,
    draft: Draft,
    choice: Choice | None,
    usage: Usage | None,
    *,
    counter: TokenCounter,
) -> CompactionResult:
    """`draft` as a finished compaction of `request`.

    Args:
        request: The conversation.
        draft: The draft of its compaction.
        choice: The model's choice; None if code decided alone.
        usage: The usage of all requests.
        counter: Estimates.
    """
    before, after = draft.tokens_before(request), draft.tokens_after(request, counter)
    return CompactionResult(
        summary=draft.summary,
        first_kept_entry_id=draft.plan.first_kept_entry_id,
        kept_entries=draft.plan.kept_entries,
        edits=draft.plan.edits,
        tokens_before=request.tokens_before,
        tokens_after=request.tokens_before * after // before,
        estimated_after=after,
        carryover=Carryover(
            lastSummary=draft.summary,
            read_files=tuple(sorted(draft.ledger.read_files)),
            modified_files=tuple(sorted(draft.ledger.modified_files)),
            ledger=draft.ledger,
            handover=draft.handover,
        ),
        summarised_by=choice.model.name if choice is not None else "",
        is_fallback=choice is None,
        usage=usage,
        focus=request.focus,
        summarised=len(draft.plan.summarised),
    )


def child_entries(result: CompactionResult, reason: str = "manual") -> tuple[Entry, ...]:
    """The first entries of the session that continues after a compaction, as one chain.

    They are the compaction and copies of the kept entries. Copies keep their times and their ids
    (context edits refer to them); only parent ids are new.
    """
    taken = {entry.id for entry in result.kept_entries}
    first = result.entry(reason).model_copy(update={"id": new_entry_id(taken)})
    if not result.first_kept_entry_id:
        first = first.model_copy(update={"first_kept_entry_id": first.id})
    chain: list[Entry] = [first]
    for entry in result.kept_entries:
        chain.append(entry.model_copy(update={"parent_id": chain[-1].id}))
    return tuple(chain)
