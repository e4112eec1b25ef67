"""What a compaction would do, worked out by the same order, without a model and any writing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agent_tui.compaction.draft import CompactionRequest, ledger_of
from agent_tui.compaction.outcome import SUMMARY_TIER, TIERED, Outcome, decide
from agent_tui.compaction.service import CompactionService, tiers_for
from agent_tui.compaction.strategies.base import Strategy
from agent_tui.compaction.strategies.tiered import TieredStrategy
from agent_tui.compaction.tiers.model import Tier
from agent_tui.config import CompactionStrategy
from agent_tui.errors import CompactionError
from agent_tui.sessions.entries import Ledger
from agent_tui.tokens import TokenCounter

_TIERS: tuple[Tier, ...] = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class TierPreview:
    """How far one tier would come with those below it, up to the target.

    A summary would come in their place: what it would free is of the whole.

    Args:
        tier: 0 to 2, or 3 for the summary.
        messages: How many messages it would change; for the summary, how many it stands for.
        tokens_after: Size of the next request after it.
        freed: Tokens that go with it.
        is_used: Whether an automatic compaction would go as far as this tier.
    """

    tier: int
    messages: int
    tokens_after: int
    freed: int
    is_used: bool


@dataclass(frozen=True, slots=True)
class CompactionPreview:
    """What a compaction would do now. Sizes in tokens, as the status bar counts them.

    Args:
        tokens_before: Size of the next request as it is.
        tokens_after: What an automatic compaction would leave of it.
        window: Of the model.
        target_tokens: What an automatic compaction comes down to.
        tiers: From 0 to 3; the summary is missing where it could not be made.
        ledger: The facts that code would carry over.
        strategy: What would make it.
        note: What that did, and why it was not the strategy that the settings name; may be
            empty.
        problem: Why there would be no summary; empty where there would.
    """

    tokens_before: int
    tokens_after: int
    window: int
    target_tokens: int
    tiers: tuple[TierPreview, ...]
    ledger: Ledger
    strategy: CompactionStrategy = TIERED
    note: str = ""
    problem: str = ""


async def preview_outcome(
    request: CompactionRequest,
    name: CompactionStrategy,
    *,
    service: CompactionService,
    without_model: Mapping[CompactionStrategy, Strategy],
    counter: TokenCounter,
) -> Outcome:
    """What `decide` would come to, as far as that can be known without asking a model.

    Where no model would be asked it is exactly that. A model's summary counts as long as it
    should be; strategies that need a model fall back on what they do without.

    Args:
        request: The conversation.
        name: The strategy to begin with.
        service: Of the session.
        without_model: The strategies, built without a model.
        counter: Estimates.
    """
    strategies: dict[CompactionStrategy, Strategy] = dict(without_model)
    strategies[TIERED] = TieredStrategy(service, counter, is_preview=True)
    return await decide(
        replace(request, ahead=None),
        name,
        strategies,
        on_progress=lambda _phase, _chars: None,
        on_usage=lambda _usage: None,
    )


async def make_preview(
    request: CompactionRequest,
    name: CompactionStrategy,
    *,
    service: CompactionService,
    without_model: Mapping[CompactionStrategy, Strategy],
    counter: TokenCounter,
) -> CompactionPreview:
    """What an automatic compaction of `request` would do, and how far each tier would come.

    The arguments are those of `preview_outcome`.
    """
    outcome: Outcome | None = None
    summary: Outcome | None = None
    problem = ""
    try:
        wanted = replace(request, wants_summary=True)
        summary = await preview_outcome(
            wanted, TIERED, service=service, without_model=without_model, counter=counter
        )
    except CompactionError as error:
        problem = error.message
    rows, before = _tier_rows(request, counter)
    try:
        outcome = await preview_outcome(
            request, name, service=service, without_model=without_model, counter=counter
        )
    except CompactionError as error:
        problem = problem or error.message
    if summary is not None:
        after = min(summary.tokens_after, before)
        rows.append(
            TierPreview(SUMMARY_TIER, summary.summarised, after, before - after, is_used=False)
        )
    is_tiered = outcome is not None and outcome.strategy == TIERED
    used = frozenset(outcome.messages if outcome is not None and is_tiered else ())
    measured, estimated = request.tokens_before or before, max(before, 1)

    def scaled(tokens: int) -> int:
        return tokens * measured // estimated

    return CompactionPreview(
        tokens_before=measured,
        tokens_after=scaled(outcome.tokens_after if outcome else before),
        window=scaled(request.window),
        target_tokens=scaled(request.target_tokens),
        tiers=tuple(
            replace(
                row,
                tokens_after=scaled(row.tokens_after),
                freed=scaled(row.freed),
                is_used=row.tier in used,
            )
            for row in rows
        ),
        ledger=ledger_of(request),
        strategy=outcome.strategy if outcome else name,
        note=outcome.note if outcome else "",
        problem=problem,
    )


def _tier_rows(request: CompactionRequest, counter: TokenCounter) -> tuple[list[TierPreview], int]:
    """A row for each tier without a model, and the size of the next request as it is."""
    plans = [tiers_for(request, counter, tier) for tier in _TIERS]
    before = plans[0].tokens_before
    sizes = [before, *(plan.tokens_after for plan in plans)]
    rows = [
        TierPreview(
            tier=tier,
            messages=sum(edit.tier == tier for edit in plan.edits),
            tokens_after=sizes[tier + 1],
            freed=sizes[tier] - sizes[tier + 1],
            is_used=False,
        )
        for tier, plan in zip(_TIERS, plans, strict=True)
    ]
    return rows, before
