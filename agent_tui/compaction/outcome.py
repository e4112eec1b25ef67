"""The result of a compaction, and the preview of one, before anything is written."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_tui.compaction.curation.answer import KeepChoice
from agent_tui.compaction.draft import CompactionDraft
from agent_tui.compaction.request import CompactionRequest
from agent_tui.messages import Usage
from agent_tui.sessions.entries import (
    Carryover,
    CompactionDetails,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    Ledger,
    MessageEntry,
    RepositoryState,
    new_entry_id,
    timestamp_after,
)
from agent_tui.sessions.replay.changes import EditReport, describe_statistics, report_entry
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
        problem: Why no model that was asked chose, in a sentence; else empty.
        repositories: What git said when it was made.
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
    problem: str = ""
    repositories: tuple[RepositoryState, ...] = ()

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
                repositories=self.repositories,
            ),
            reason=reason,
            focus=self.focus or None,
            usage=self.usage,
        )


def result_of(
    request: CompactionRequest,
    draft: CompactionDraft,
    choice: KeepChoice | None,
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
        tokens_before=request.sizes.used,
        tokens_after=request.sizes.used * after // before,
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
        focus=request.asking.focus,
        summarised=draft.plan.messages,
        repositories=request.repositories,
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


TIERED = "tiered"
SUMMARY_TIER = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished compaction that is not written yet. Sizes are in estimated tokens.

    Args:
        edits: Edits of messages that stay, at most one each, in their order; all of one batch.
        tokens_before: Size of the next request without it.
        tokens_after: Size of the next request with it.
        statistics: What another strategy than the tiers did, as counts with readable names.
        note: An additional note for the user; may be empty.
        summary: The summary of the messages before those; None without one.
        freed: Tokens freed by tier, if tiers made the edits.
        strategy: The strategy that made it.
    """

    edits: tuple[ContextEditEntry, ...]
    tokens_before: int
    tokens_after: int
    statistics: Mapping[str, int] = field(default_factory=dict[str, int])
    note: str = ""
    summary: CompactionResult | None = None
    freed: Mapping[int, int] = field(default_factory=dict[int, int])
    strategy: str = TIERED

    @property
    def freed_tokens(self) -> int:
        """Tokens freed in total."""
        return self.tokens_before - self.tokens_after

    @property
    def summarised(self) -> int:
        """Number of messages that the summary replaces."""
        return self.summary.summarised if self.summary is not None else 0

    @property
    def messages(self) -> Mapping[int, int]:
        """Number of messages that each tier changes; the summary is tier 3."""
        if self.summarised:
            return {SUMMARY_TIER: self.summarised}
        return Counter(edit.tier for edit in self.edits)

    def scale_tokens_after(self, used_tokens: int) -> int:
        """`tokens_after` on the provider's scale, which counts `used_tokens` before."""
        return used_tokens * self.tokens_after // max(self.tokens_before, 1)

    def entries(self, reason: str, used_tokens: int) -> tuple[Entry, ...]:
        """The entries to append, all at once, to the session it was made from.

        Args:
            reason: As in `CompactionEntry`.
            used_tokens: Measured size before.
        """
        if self.summary is not None:
            return (*self.edits, replace(self.summary, note=self.note).entry(reason))
        return (*self.edits, report_entry(self._report(reason, used_tokens)))

    def child_entries(
        self,
        path: Sequence[Entry],
        reason: str,
        used_tokens: int,
        carried: Sequence[Entry] = (),
    ) -> tuple[Entry, ...]:
        """The first entries of a session that continues from it.

        Args:
            path: The entries it was made from.
            reason: As in `CompactionEntry`.
            used_tokens: Measured size before.
            carried: What stays in force after a summary, which replaces `path`.
        """
        if self.summary is not None:
            return (*child_entries(replace(self.summary, note=self.note), reason), *carried)
        return (*path, *self.entries(reason, used_tokens))

    def _report(self, reason: str, used_tokens: int) -> EditReport:
        after = self.scale_tokens_after(used_tokens)
        measured = {"before": used_tokens, "after": after}
        known = {key: measured.get(key, count) for key, count in self.statistics.items()}
        name = "" if self.strategy == TIERED else self.strategy
        return EditReport(
            batch=self.edits[0].batch if self.edits else "",
            reason=reason,
            tokens_before=used_tokens,
            tokens_after=after,
            freed=self.freed,
            messages=self.messages,
            strategy=name,
            statistics=known,
            note=" ".join(filter(None, (describe_statistics(name, known), self.note))),
        )


@dataclass(frozen=True, slots=True)
class CompactionPreview:
    """What ``/compact`` and an automatic compaction would do now.

    Sizes in tokens, as the status bar counts them.

    Args:
        tokens_before: Size of the next request now.
        tokens_after: Its size after an automatic compaction.
        compact_tokens: Its size after ``/compact``; None if that is not possible.
        summarised: Number of messages that the summary of ``/compact`` would replace.
        window: The model's window.
        target_tokens: Target size of an automatic compaction.
        messages: Number of messages that each tier of it would change.
        freed: Tokens that each of these tiers would free.
        ledger: The facts that code would carry over.
        problem: Why there would be no summary; empty if there would.
    """

    tokens_before: int
    tokens_after: int
    compact_tokens: int | None
    summarised: int
    window: int
    target_tokens: int
    messages: Mapping[int, int]
    freed: Mapping[int, int]
    ledger: Ledger
    problem: str = ""
