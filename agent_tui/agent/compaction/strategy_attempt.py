"""Asking a strategy to make room; what it plans is written by the compactor."""

import asyncio
from collections import Counter
from dataclasses import dataclass

from agent_tui.agent.activity import Emit
from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import OnProgress, OnUsage
from agent_tui.compaction.strategies.base import Strategy, StrategyPlan
from agent_tui.config import CompactionStrategy
from agent_tui.errors import CompactionError
from agent_tui.events import (
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    CompactionReason,
)
from agent_tui.sessions.replay.changes import EditReport, describe_statistics


@dataclass(frozen=True, slots=True)
class StrategyAttempt:
    """What came of asking a strategy.

    Args:
        strategy: Its name.
        plan: Its edits; None where it failed.
        problem: Why that is not enough, as a sentence; empty where it is.
    """

    strategy: CompactionStrategy
    plan: StrategyPlan | None
    problem: str = ""


async def attempt_strategy(
    name: CompactionStrategy,
    strategy: Strategy,
    request: CompactionRequest,
    *,
    enough_tokens: int,
    least_gain_tokens: int,
    emit: Emit,
    on_usage: OnUsage,
) -> StrategyAttempt:
    """Ask `strategy` for a plan. Sizes in tokens, as estimated.

    Args:
        name: The strategy's name.
        strategy: Plans the edits.
        request: The conversation, with its target.
        enough_tokens: The size of the next request with which all is well.
        least_gain_tokens: What a plan must free to be one.
        emit: Told of each step, and of a cancel.
        on_usage: Told of every request that was paid for.
    """
    try:
        plan = await strategy.plan(request, on_progress=progress_to(emit), on_usage=on_usage)
    except CompactionError as error:
        return StrategyAttempt(name, None, str(error))
    except asyncio.CancelledError:
        emit(CompactionFailed("Compaction cancelled; nothing was changed."))
        raise
    if plan.tokens_before - plan.tokens_after < least_gain_tokens:
        return StrategyAttempt(name, None, "It would free too little.")
    if plan.tokens_after > enough_tokens:
        problem = plan.note or "It did not come down to the target."
        return StrategyAttempt(name, plan, problem)
    return StrategyAttempt(name, plan)


def progress_to(emit: Emit) -> OnProgress:
    """Tells the person of each step."""
    return lambda phase, summary_chars: emit(CompactionProgress(phase, summary_chars))


def report_on(
    attempt: StrategyAttempt, plan: StrategyPlan, reason: CompactionReason, used_tokens: int
) -> EditReport:
    """The report that ends the batch of `plan`, in sizes as measured: `used_tokens` before."""
    after = used_tokens * plan.tokens_after // max(plan.tokens_before, 1)
    measured = {"before": used_tokens, "after": after}
    known = {key: measured.get(key, count) for key, count in plan.statistics.items()}
    return EditReport(
        batch=plan.edits[0].batch,
        reason=reason,
        tokens_before=used_tokens,
        tokens_after=after,
        messages=Counter(edit.tier for edit in plan.edits),
        strategy=attempt.strategy,
        statistics=known,
        note=" ".join(filter(None, (describe_statistics(attempt.strategy, known), plan.note))),
    )


def finished_event(
    entry_id: str, report: EditReport, reason: CompactionReason
) -> CompactionFinished:
    """What the person is told of a batch that was written."""
    return CompactionFinished(
        entry_id=entry_id,
        reason=reason,
        summary="",
        tokens_before=report.tokens_before,
        tokens_after=report.tokens_after,
        summarised_by="",
        is_fallback=False,
        note=report.note,
        messages=report.messages,
        strategy=report.strategy,
        statistics=report.statistics,
    )
