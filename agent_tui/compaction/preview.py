"""What a compaction would do, worked out by the same order, without a model and any writing."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from agent_tui.compaction.draft import CompactionRequest, ledger_of
from agent_tui.compaction.outcome import SUMMARY_TIER, TIERED, Outcome, decide
from agent_tui.compaction.service import CompactionService
from agent_tui.compaction.strategies.base import Strategy
from agent_tui.compaction.strategies.message_plan import Conversation
from agent_tui.compaction.strategies.tiered import TieredStrategy
from agent_tui.config import CompactionStrategy
from agent_tui.errors import CompactionError
from agent_tui.sessions.entries import Ledger
from agent_tui.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class CompactionPreview:
    """What ``/compact`` and an automatic compaction would do now.

    Sizes in tokens, as the status bar counts them.

    Args:
        tokens_before: Size of the next request as it is.
        tokens_after: What an automatic compaction would leave of it.
        compact_tokens: What ``/compact`` would leave of it; None if it couldn't be made.
        summarised: How many messages the summary of ``/compact`` would replace.
        window: Of the model.
        target_tokens: What an automatic compaction comes down to.
        messages: How many messages each tier of the automatic compaction would change.
        freed: What each of these would free.
        ledger: The facts that code would carry over.
        strategy: What would make the automatic one.
        note: What that did, and why it was not the strategy that the settings name; may be
            empty.
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
    """What ``/compact`` and an automatic compaction of `request` would do.

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
    # Without one, an automatic compaction has nothing to do.
    with suppress(CompactionError):
        outcome = await preview_outcome(
            request, name, service=service, without_model=without_model, counter=counter
        )
    before = Conversation(request, counter, name).tokens_before
    measured, estimated = request.tokens_before or before, max(before, 1)

    def scaled(tokens: int) -> int:
        return tokens * measured // estimated

    messages, freed = _by_tier(outcome)
    return CompactionPreview(
        tokens_before=measured,
        tokens_after=scaled(outcome.tokens_after if outcome else before),
        compact_tokens=scaled(min(summary.tokens_after, before)) if summary else None,
        summarised=summary.summarised if summary else 0,
        window=scaled(request.window),
        target_tokens=scaled(request.target_tokens),
        messages=messages,
        freed={tier: scaled(tokens) for tier, tokens in freed.items()},
        ledger=ledger_of(request),
        strategy=outcome.strategy if outcome else name,
        note=outcome.note if outcome else "",
        problem=problem,
    )


def _by_tier(outcome: Outcome | None) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """How many messages each tier would change and what that frees; nothing if none would."""
    if outcome is None or outcome.strategy != TIERED:
        return {}, {}
    if outcome.summarised:
        return outcome.messages, {SUMMARY_TIER: outcome.tokens_before - outcome.tokens_after}
    return outcome.messages, outcome.freed
