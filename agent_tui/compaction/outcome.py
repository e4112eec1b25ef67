"""The result of a compaction, and the preview of one, before anything is written."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_tui.compaction.result import CompactionResult, child_entries
from agent_tui.sessions.entries import ContextEditEntry, Entry, Ledger
from agent_tui.sessions.replay.changes import EditReport, describe_statistics, report_entry
from agent_tui.sessions.replay.goals import goal_entry, goal_in

TIERED = "tiered"
SUMMARY_TIER = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished compaction that is not written yet. Sizes are in estimated tokens.

    Args:
        strategy: The strategy that made it.
        tokens_before: Size of the next request without it.
        tokens_after: Size of the next request with it.
        edits: Edits of messages that stay.
        summary: The summary of the messages before those; None without one.
        summarised: Number of messages that the summary replaces.
        freed: Tokens freed by tier, if tiers made the edits.
        statistics: What another strategy did, as counts with readable names.
        note: An additional note for the user; may be empty.
    """

    strategy: str
    tokens_before: int
    tokens_after: int
    edits: tuple[ContextEditEntry, ...] = ()
    summary: CompactionResult | None = None
    summarised: int = 0
    freed: Mapping[int, int] = field(default_factory=dict[int, int])
    statistics: Mapping[str, int] = field(default_factory=dict[str, int])
    note: str = ""

    @property
    def messages(self) -> Mapping[int, int]:
        """Number of messages that each tier changes; the summary is tier 3."""
        if self.summarised:
            return {SUMMARY_TIER: self.summarised}
        return Counter(edit.tier for edit in self.edits)

    def measured_after(self, used_tokens: int) -> int:
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
        self, path: Sequence[Entry], reason: str, used_tokens: int
    ) -> tuple[Entry, ...]:
        """The first entries of a session that continues from it, and from an open goal on.

        Args:
            path: The entries it was made from.
            reason: As in `CompactionEntry`.
            used_tokens: Measured size before.
        """
        if self.summary is not None:
            goal = goal_in(path)
            open_goal = (goal_entry(goal),) if goal is not None and goal.is_open else ()
            return (*child_entries(replace(self.summary, note=self.note), reason), *open_goal)
        return (*path, *self.entries(reason, used_tokens))

    def _report(self, reason: str, used_tokens: int) -> EditReport:
        after = self.measured_after(used_tokens)
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
