"""One compaction of a session file by a strategy: a copy of it, with the strategy's edits."""

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agent_tui.agent.compaction.strategy_attempt import StrategyAttempt, report_on
from agent_tui.cli.compact.tiers import CompactionReport, context_tokens
from agent_tui.compaction.draft import CompactionRequest, ledger_of
from agent_tui.compaction.model_client import OnProgress
from agent_tui.compaction.strategies.base import Strategy, StrategyPlan, target_when_asked
from agent_tui.config import CompactionSettings, CompactionStrategy
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import Carryover, ContextEditEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import report_entry
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter

_TIERS = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class StrategyDraft:
    """What a strategy would do to a session; nothing is written yet.

    Args:
        request: The session.
        plan: The edits.
        target_tokens: What the window asks for.
    """

    request: CompactionRequest
    plan: StrategyPlan
    target_tokens: int

    @property
    def is_enough(self) -> bool:
        """Whether it comes down to the target."""
        return self.plan.tokens_after <= self.target_tokens

    @property
    def problem(self) -> str:
        """Why it is not enough, as a sentence."""
        return self.plan.note or "It did not come down to the target."


class FileStrategy:
    """Compacts one session that lies on the disk by a strategy, and never changes its file.

    Args:
        name: The strategy's name.
        strategy: What plans the edits.
        counter: Estimates.
        settings: ``[compaction]``.
        window: Context window in tokens that the session is to go on in.
        target_tokens: What to come down to.
    """

    def __init__(
        self,
        name: CompactionStrategy,
        strategy: Strategy,
        counter: TokenCounter,
        settings: CompactionSettings,
        *,
        window: int,
        target_tokens: int,
    ) -> None:
        self._name: CompactionStrategy = name
        self._strategy = strategy
        self._counter = counter
        self._settings = settings
        self._window = window
        self._target_tokens = target_tokens

    async def draft(
        self, log: SessionLog, *, model: ModelRef, focus: str, cwd: Path, on_progress: OnProgress
    ) -> StrategyDraft:
        """What the strategy would do to `log`.

        Args:
            log: The session.
            model: Who is asked, when no setting names another.
            focus: What to pay attention to.
            cwd: The session's working folder.
            on_progress: Told of each step.

        Raises:
            CompactionError: The strategy failed, or there is nothing to compact.
        """
        path, carryover = log.path_entries(), log.header.compaction
        used = await asyncio.to_thread(
            context_tokens, path, carryover, self._counter, self._settings
        )
        target = target_when_asked(self._name, used, self._settings, self._target_tokens)
        request = CompactionRequest(
            path=path,
            previous=carryover,
            model=model,
            window=self._window,
            cwd=cwd,
            settings=self._settings,
            tokens_before=used,
            focus=focus,
            target_tokens=target,
        )
        plan = await self._strategy.plan(
            request, on_progress=on_progress, on_usage=lambda _usage: None
        )
        return StrategyDraft(request, plan, self._target_tokens)

    def write(
        self, log: SessionLog, draft: StrategyDraft, store: SessionStore | None
    ) -> CompactionReport:
        """Write `draft` as a copy of `log` with its edits; without `store` only say what it is.

        Raises:
            SessionError: The copy cannot be written.
        """
        request, plan = draft.request, draft.plan
        attempt = StrategyAttempt(self._name, plan)
        report = report_on(attempt, plan, "manual", request.tokens_before)
        sizes = self._sizes(draft)
        report = report.model_copy(
            update={
                "tokens_after": sizes[-1],
                "statistics": {**report.statistics, "after": sizes[-1]},
            }
        )
        child: SessionLog | None = None
        if store is not None:
            entries = (*request.path, *plan.edits, report_entry(report))
            child = store.create_child(log, entries, log.header.compaction, cwd=request.cwd)
            child.close()
        ledger = ledger_of(request)
        known = Carryover(
            read_files=tuple(sorted(ledger.read_files)),
            modified_files=tuple(sorted(ledger.modified_files)),
            ledger=ledger,
        )
        return CompactionReport(
            path=child.path if child else None,
            tokens_before=sizes[0],
            tokens_after=sizes[-1],
            freed=tuple(before - after for before, after in pairwise(sizes)),
            target_tokens=draft.target_tokens,
            carryover=known,
            is_fallback=False,
            note=plan.note,
            strategy=self._name,
            statistics=report.statistics,
        )

    def _sizes(self, draft: StrategyDraft) -> list[int]:
        """Tokens without any edit, then with those of ever higher tiers."""
        request = draft.request
        edits = [
            edit.model_copy(update={"id": f"edit{number}"})
            for number, edit in enumerate(draft.plan.edits)
        ]
        some: list[list[ContextEditEntry]] = [[]]
        some += [[edit for edit in edits if edit.tier <= tier] for tier in _TIERS]
        return [
            context_tokens((*request.path, *made), request.previous, self._counter, self._settings)
            for made in some
        ]
