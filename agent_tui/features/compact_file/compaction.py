"""Compacts a session file once: the result is written as a new session, its child."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.agent.guarded_part import carried_without_conversation
from agent_tui.agent.session.spending import with_spending
from agent_tui.compaction.conversation import ledger_of
from agent_tui.compaction.outcome import SUMMARY_TIER, TIERED
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.request import Asking, CompactionRequest, ContextSizes
from agent_tui.config import CompactionSettings
from agent_tui.feature import Feature, own_features
from agent_tui.messages import JsonObject
from agent_tui.providers.base import ModelRef
from agent_tui.providers.client import OnProgress
from agent_tui.sessions.context import build_context, wrap_summary
from agent_tui.sessions.entries import Carryover, Entry, RepositoryState
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter

_TIERS = (0, 1, 2, SUMMARY_TIER)


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """The result of a compaction. Sizes in estimated tokens, without system prompt and tools.

    Args:
        path: The new session; None if none was written.
        freed: What each tier freed; tier 3 is the summary. The sum is `tokens_before`
            minus `tokens_after`.
        target_tokens: The size that was aimed at.
        carryover: What is kept beside the messages: summary, file lists, ledger.
        is_fallback: Whether code wrote the summary.
        note: One line for the user if something did not go as planned; else empty.
        strategy: The strategy that was used.
        statistics: What was done to how many messages; empty for the tiers.
        seconds: Duration, from the opened file to the end.
    """

    path: Path | None
    tokens_before: int
    tokens_after: int
    freed: tuple[int, ...]
    target_tokens: int
    carryover: Carryover
    is_fallback: bool
    note: str
    strategy: str = TIERED
    statistics: Mapping[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0

    def to_json(self) -> JsonObject:
        """The report as ``--json`` prints it."""
        ledger = self.carryover.ledger
        return {
            "path": str(self.path) if self.path else None,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "target_tokens": self.target_tokens,
            "tiers": {str(tier): tokens for tier, tokens in enumerate(self.freed)},
            "summary": self.carryover.summary,
            "read_files": list(self.carryover.read_files),
            "modified_files": list(self.carryover.modified_files),
            "pinned": list(ledger.pinned) if ledger else [],
            "fallback": self.is_fallback,
            "note": self.note,
            "seconds": self.seconds,
            "strategy": self.strategy,
            "statistics": dict(self.statistics),
        }


@dataclass(frozen=True, slots=True)
class FileCompaction:
    """Compacts one session on disk; never changes its file.

    Args:
        planner: Plans the compaction.
        counter: Estimates tokens.
        settings: The ``[compaction]`` section.
        window: Context window in tokens in which the session will continue.
        target_tokens: The size to reach.
        features: Those whose parts carry something on to the new session.
        is_window_given: Whether the window is another than that of the session's model.
    """

    planner: CompactionPlanner
    counter: TokenCounter
    settings: CompactionSettings
    window: int
    target_tokens: int
    features: Sequence[Feature] = field(default_factory=own_features)
    is_window_given: bool = False

    async def run(
        self,
        log: SessionLog,
        *,
        strategy: str,
        model: ModelRef,
        focus: str,
        cwd: Path,
        store: SessionStore | None,
        on_progress: OnProgress,
        repositories: tuple[RepositoryState, ...] = (),
    ) -> CompactionReport:
        """Compact `log` as ``/compact`` would, and write the result as its child.

        Args:
            log: The session.
            strategy: How to compact.
            model: The model that summarises if no setting names another.
            focus: What to pay attention to.
            cwd: The session's working folder.
            store: Where the child goes; None writes nothing.
            on_progress: Called at each step.
            repositories: What git says; none for "as of the log".

        Raises:
            CompactionError: There is nothing to compact; nothing was written.
            SessionError: The child cannot be written.
        """
        started_s = time.monotonic()
        on_progress("reading the conversation", 0)
        used = await asyncio.to_thread(self._tokens_of, log.path_entries(), log.header.compaction)
        request = CompactionRequest(
            path=log.path_entries(),
            previous=log.header.compaction,
            model=model,
            cwd=cwd,
            settings=self.settings,
            repositories=repositories,
            sizes=ContextSizes(window=self.window, used=used, target=self.target_tokens),
            asking=Asking(focus=focus),
            occasion="new session",
        )
        outcome = await self.planner.outcome(request, strategy, on_progress)
        summary = outcome.summary
        carryover = summary.carryover if summary else log.header.compaction
        faults: list[str] = []
        carried = carried_without_conversation(
            self.features, request.path, lambda notice, _fault: faults.append(notice.text)
        )
        entries = outcome.child_entries(request.path, "manual", used, carried)
        after = await asyncio.to_thread(self._tokens_of, entries, carryover)
        path: Path | None = None
        if store is not None:
            carried_on = with_spending(carryover, log, summary)
            if self.is_window_given:
                carried_on = carried_on.model_copy(update={"window": self.window})
            child = store.create_child(log, entries, carried_on, cwd=cwd)
            child.close()
            path = child.path
        gained = used - after
        by_tier = {SUMMARY_TIER: gained} if summary else _adding_up_to(gained, outcome.freed)
        return CompactionReport(
            path=path,
            tokens_before=used,
            tokens_after=after,
            freed=tuple(by_tier.get(tier, 0) for tier in _TIERS),
            target_tokens=self.target_tokens,
            carryover=summary.carryover if summary else _facts_carried(request),
            is_fallback=summary.is_fallback if summary else False,
            note=" ".join(filter(None, (outcome.note, *faults))),
            strategy=outcome.strategy,
            statistics=outcome.statistics,
            seconds=round(time.monotonic() - started_s, 3),
        )

    def _tokens_of(self, path: Sequence[Entry], carryover: Carryover | None) -> int:
        """Tokens of the next request for `path`, as ``agent-tui context`` shows them."""
        role = self.settings.summary_role
        context = build_context(path, summary_role=role, carryover=carryover)
        tokens = self.counter.count_messages(item.message for item in context.messages)
        if role == "system" and context.summary:
            tokens += self.counter.count_text(wrap_summary(context.summary))
        return tokens


def _adding_up_to(gained: int, freed: Mapping[int, int]) -> Mapping[int, int]:
    """`freed` by tier, with the last tier's share adjusted so that the sum is `gained`."""
    known = {tier: tokens for tier, tokens in freed.items() if tier != 2}
    return {**known, 2: gained - sum(known.values())}


def _facts_carried(request: CompactionRequest) -> Carryover:
    """The carryover for a report on a session in which messages only became shorter."""
    ledger = ledger_of(request)
    return Carryover(
        read_files=tuple(sorted(ledger.read_files)),
        modified_files=tuple(sorted(ledger.modified_files)),
        ledger=ledger,
    )
