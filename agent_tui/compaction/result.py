"""A finished compaction that nobody has written yet, and the entries it becomes."""

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
    """What a compaction came to. Nothing is written before the caller appends it.

    Args:
        summary: Notes of a model, if any, amid the blocks that code writes.
        first_kept_entry_id: The first entry that stays; empty when none does.
        kept_entries: The entries that stay, as they are in the session, with `edits`.
        edits: Edits of messages that stay, made for this compaction.
        tokens_before: The caller's measured usage.
        tokens_after: The same for the context afterwards; always less.
        estimated_after: `tokens_after` in tokens of ours.
        carryover: What the next session needs to know.
        summarised_by: Name of the model that chose; empty without one.
        is_fallback: No model chose what stays.
        usage: What the requests to models used; None without any.
        note: One line for the person when something did not go as planned; else empty.
        focus: What the person asked to pay attention to.
        summarised: How many messages the summary stands for.
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

        It is dated later than every message it keeps, whatever the clock says, because the
        age of a kept reply is what tells its outdated usage from a new one.
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
        draft: What becomes of it.
        choice: What a model wanted kept; None where code decided alone.
        usage: What the requests to models used.
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
    """The first entries of the session that goes on after a compaction, as one chain.

    The compaction, then copies of the kept entries. Copies keep their ids (context edits name
    them) and their times; only the parent ids are new.
    """
    taken = {entry.id for entry in result.kept_entries}
    first = result.entry(reason).model_copy(update={"id": new_entry_id(taken)})
    if not result.first_kept_entry_id:
        first = first.model_copy(update={"first_kept_entry_id": first.id})
    chain: list[Entry] = [first]
    for entry in result.kept_entries:
        chain.append(entry.model_copy(update={"parent_id": chain[-1].id}))
    return tuple(chain)
