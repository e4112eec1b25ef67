"""What a compaction comes to, and the one order in which the ways to compact are tried."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import OnProgress, OnUsage
from agent_tui.compaction.result import CompactionResult, child_entries
from agent_tui.compaction.strategies.base import Strategy, StrategyPlan, target_when_asked
from agent_tui.config import CompactionStrategy
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.sessions.entries import ContextEditEntry, Entry
from agent_tui.sessions.replay.changes import EditReport, describe_statistics, report_entry

TIERED: CompactionStrategy = "tiered"
SUMMARY_TIER = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished compaction that nobody has written yet. Sizes in estimated tokens.

    Args:
        strategy: Which made it.
        tokens_before: Size of the next request as it is.
        tokens_after: Its size afterwards.
        edits: Of messages that stay.
        summary: What stands for the messages before those; None where there is none.
        summarised: How many messages a summary stands for, one that is only measured included.
        freed: By tier, where tiers made the edits.
        statistics: What another strategy did, by words a person understands.
        note: What the person should know besides; may be empty.
    """

    strategy: CompactionStrategy
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
        """How many messages each tier changes; the summary is tier 3."""
        if self.summarised:
            return {SUMMARY_TIER: self.summarised}
        return Counter(edit.tier for edit in self.edits)

    def measured_after(self, used_tokens: int) -> int:
        """`tokens_after` where the provider counts `used_tokens` before."""
        return used_tokens * self.tokens_after // max(self.tokens_before, 1)

    def entries(self, reason: str, used_tokens: int) -> tuple[Entry, ...]:
        """What is appended, in one go, to the session it was made from.

        Args:
            reason: Why it was made, as in `CompactionEntry`.
            used_tokens: Size before, as measured.
        """
        if self.summary is not None:
            return (*self.edits, replace(self.summary, note=self.note).entry(reason))
        return (*self.edits, report_entry(self._report(reason, used_tokens)))

    def child_entries(
        self, path: Sequence[Entry], reason: str, used_tokens: int
    ) -> tuple[Entry, ...]:
        """The first entries of a session that goes on from it.

        Args:
            path: What it was made from.
            reason: Why it was made, as in `CompactionEntry`.
            used_tokens: Size before, as measured.
        """
        if self.summary is not None:
            return child_entries(replace(self.summary, note=self.note), reason)
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


async def decide(
    request: CompactionRequest,
    name: CompactionStrategy,
    strategies: Mapping[CompactionStrategy, Strategy],
    *,
    on_progress: OnProgress,
    on_usage: OnUsage,
) -> Outcome:
    """What comes of compacting `request` by the strategy `name`; no side effect.

    Where that strategy fails, frees too little or does not come down to the target, the tiers
    take over; where they cannot do anything either, what it found is better than nothing.

    Args:
        request: The conversation.
        name: The strategy to begin with.
        strategies: All of them.
        on_progress: Told of each step.
        on_usage: Told of every request to a model that was paid for.

    Raises:
        CompactionError: There is nothing to gain, or it went wrong.
    """
    found: StrategyPlan | None = None
    problem = ""
    if name != TIERED:
        wanted = replace(request, target_tokens=_wanted(request, name))
        try:
            found = await strategies[name].plan(wanted, on_progress=on_progress, on_usage=on_usage)
        except NothingToCompactError:
            if request.is_asked and request.estimated_before <= request.target_tokens:
                raise
            problem = "It found nothing to shorten."
        except CompactionError as error:
            problem = str(error)
        if found is not None and found.freed_tokens < request.least_gain_tokens:
            found, problem = None, "It would free too little."
        elif found is not None and found.tokens_after <= request.target_tokens:
            return _outcome(name, found)
        elif found is not None:
            problem = found.note or "It did not reach the target."
    try:
        plan = await strategies[TIERED].plan(request, on_progress=on_progress, on_usage=on_usage)
    except CompactionError:
        if found is None:
            raise
        return _outcome(name, found)
    took_over = f"{name}: {problem} The tiers took over." if problem else ""
    return _outcome(TIERED, plan, took_over)


def _outcome(name: CompactionStrategy, plan: StrategyPlan, before_note: str = "") -> Outcome:
    return Outcome(
        strategy=name,
        tokens_before=plan.tokens_before,
        tokens_after=plan.tokens_after,
        edits=plan.edits,
        summary=plan.summary,
        summarised=plan.summarised,
        freed=plan.freed,
        statistics=plan.statistics,
        note=" ".join(filter(None, (before_note, plan.note))),
    )


def _wanted(request: CompactionRequest, name: CompactionStrategy) -> int:
    if not request.is_asked:
        return request.target_tokens
    used = request.estimated_before
    return target_when_asked(name, used, request.settings, request.target_tokens)
