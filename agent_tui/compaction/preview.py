"""What a compaction would do, worked out without a model and without writing anything."""

from dataclasses import dataclass, replace

from agent_tui.compaction.draft import CompactionRequest, ledger_of
from agent_tui.compaction.service import CompactionService
from agent_tui.compaction.tiers.model import Tier, TierPlan
from agent_tui.compaction.tiers.pipeline import plan_tiers
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.sessions.entries import Ledger
from agent_tui.tokens import TokenCounter

SUMMARY_TIER = 3

_TIERS: tuple[Tier, ...] = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class TierPreview:
    """What one tier would do after those below it, if each did all it can.

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
        window: Of the model.
        target_tokens: What an automatic compaction comes down to.
        tiers: From 0 to 3; the summary is missing where it could not be made.
        ledger: The facts that code would carry over.
        problem: Why there would be no summary; empty where there would.
    """

    tokens_before: int
    window: int
    target_tokens: int
    tiers: tuple[TierPreview, ...]
    ledger: Ledger
    problem: str = ""


def make_preview(
    request: CompactionRequest,
    *,
    service: CompactionService,
    counter: TokenCounter,
    settings: CompactionSettings,
    target_tokens: int,
) -> CompactionPreview:
    """Work out what each tier and a summary would do to `request`; takes a moment.

    Args:
        request: The conversation.
        service: Settles the summary as far as code can.
        counter: Estimates.
        settings: What is protected, and how much stays.
        target_tokens: What an automatic compaction comes down to, as `counter` estimates.
    """

    def plan(up_to: Tier, target: int) -> TierPlan:
        return plan_tiers(
            request.path,
            carryover=request.previous,
            counter=counter,
            settings=settings,
            window=request.window,
            overhead_tokens=request.overhead_tokens,
            target_tokens=target,
            up_to=up_to,
        )

    plans = [plan(tier, 0) for tier in _TIERS]
    before = plans[0].tokens_before
    wanted = plan(2, target_tokens)
    is_enough = wanted.tokens_after <= target_tokens
    used = {edit.tier for edit in wanted.edits} if is_enough else {SUMMARY_TIER}
    sizes = [before, *(found.tokens_after for found in plans)]
    rows = [
        TierPreview(
            tier=tier,
            messages=sum(edit.tier == tier for edit in plans[tier].edits),
            tokens_after=sizes[tier + 1],
            freed=sizes[tier] - sizes[tier + 1],
            is_used=tier in used,
        )
        for tier in _TIERS
    ]
    problem = ""
    try:
        rows.append(_summary_row(request, service, before, is_used=not is_enough))
    except CompactionError as error:
        problem = error.message
    measured = request.tokens_before or before
    return CompactionPreview(
        tokens_before=measured,
        window=request.window * measured // max(before, 1),
        target_tokens=target_tokens * measured // max(before, 1),
        tiers=tuple(_as_measured(row, measured, max(before, 1)) for row in rows),
        ledger=ledger_of(request),
        problem=problem,
    )


def _summary_row(
    request: CompactionRequest, service: CompactionService, before: int, *, is_used: bool
) -> TierPreview:
    draft = service.draft(request)
    after = min(service.expected_tokens(request, draft), before)
    return TierPreview(SUMMARY_TIER, len(draft.messages), after, before - after, is_used)


def _as_measured(row: TierPreview, measured: int, estimated: int) -> TierPreview:
    """`row` in the provider's tokens instead of ours."""
    return replace(
        row,
        tokens_after=row.tokens_after * measured // estimated,
        freed=row.freed * measured // estimated,
    )
