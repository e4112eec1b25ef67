"""What a compaction would do, worked out without a model and without writing anything."""

from collections.abc import Container
from dataclasses import dataclass, replace

from agent_tui.compaction.draft import CompactionRequest, ledger_of
from agent_tui.compaction.service import CompactionService
from agent_tui.compaction.tiers.model import Tier, TierPlan
from agent_tui.compaction.tiers.pipeline import plan_tiers
from agent_tui.compaction.tiers.units import read_units
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
        tokens_after: What an automatic compaction would leave of it.
        window: Of the model.
        target_tokens: What an automatic compaction comes down to.
        tiers: From 0 to 3; the summary is missing where it could not be made.
        ledger: The facts that code would carry over.
        problem: Why there would be no summary; empty where there would.
    """

    tokens_before: int
    tokens_after: int
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
    target_tokens: int,
) -> CompactionPreview:
    """Work out what each tier and a summary would do to `request`; takes a moment.

    Args:
        request: The conversation.
        service: Settles the summary as far as code can.
        counter: Estimates.
        target_tokens: What an automatic compaction comes down to, as `counter` estimates.
    """
    carryover, window = request.previous, request.window

    def plan(up_to: Tier, target: int) -> TierPlan:
        return plan_tiers(
            request.path,
            carryover=carryover,
            counter=counter,
            settings=request.settings,
            window=window,
            overhead_tokens=request.overhead_tokens,
            target_tokens=target,
            up_to=up_to,
        )

    wanted = plan(2, target_tokens)
    units = read_units(
        request.path, carryover=carryover, counter=counter, settings=request.settings, window=window
    )
    protected = sum(unit.tokens for unit in units.items if unit.is_protected)
    # A target below what is protected would let the tiers shorten that too.
    lowest = 0 if wanted.protected_over_target else protected + request.overhead_tokens
    plans = [plan(tier, lowest) for tier in _TIERS]
    before = wanted.tokens_before
    summary, problem = None, ""
    try:
        summary = _summary_row(request, service, before)
    except CompactionError as error:
        problem = error.message
    is_summarised = summary is not None and wanted.tokens_after > target_tokens
    used = {SUMMARY_TIER} if is_summarised else {edit.tier for edit in wanted.edits}
    sizes = [before, *(found.tokens_after for found in plans)]
    rows = [
        TierPreview(
            tier=tier,
            messages=sum(edit.tier == tier for edit in plans[tier].edits),
            tokens_after=sizes[tier + 1],
            freed=sizes[tier] - sizes[tier + 1],
            is_used=False,
        )
        for tier in _TIERS
    ]
    rows += [summary] if summary is not None else []
    after = summary.tokens_after if is_summarised and summary else wanted.tokens_after
    measured, estimated = request.tokens_before or before, max(before, 1)
    return CompactionPreview(
        tokens_before=measured,
        tokens_after=after * measured // estimated,
        window=window * measured // estimated,
        target_tokens=target_tokens * measured // estimated,
        tiers=tuple(_as_measured(row, measured, estimated, used) for row in rows),
        ledger=ledger_of(request),
        problem=problem,
    )


def _summary_row(
    request: CompactionRequest, service: CompactionService, before: int
) -> TierPreview:
    draft = service.draft(request)
    after = min(service.expected_tokens(request, draft), before)
    return TierPreview(SUMMARY_TIER, len(draft.messages), after, before - after, is_used=False)


def _as_measured(
    row: TierPreview, measured: int, estimated: int, used: Container[int]
) -> TierPreview:
    """`row` in the provider's tokens instead of ours; `used` are the tiers of an automatic one."""
    return replace(
        row,
        tokens_after=row.tokens_after * measured // estimated,
        freed=row.freed * measured // estimated,
        is_used=row.tier in used,
    )
