"""Strategy `tiered`: make messages shorter in place; where that is not enough, a summary."""

import asyncio
from dataclasses import dataclass, replace

from agent_tui.compaction.draft import CompactionRequest, Draft
from agent_tui.compaction.model_client import OnProgress, OnUsage
from agent_tui.compaction.service import CompactionService
from agent_tui.compaction.strategies.base import Strategy, StrategyPlan, StrategyServices
from agent_tui.compaction.strategies.in_place import shorten_in_place, shortening_does
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.tokens import TokenCounter

_MUCH_OVER = 1.2

DESCRIPTION = "a summary, in this session"


def build(services: StrategyServices) -> Strategy:
    """The strategy, ready to plan."""
    service = CompactionService(services.client, services.counter, services.models)
    return TieredStrategy(service, services.counter)


@dataclass(frozen=True, slots=True)
class TieredStrategy:
    """The tiers without a model first, the summary where they do not come down to the target.

    Args:
        service: Writes the summary.
        counter: Estimates.
        is_preview: No model is asked: a summary that one would write is only measured.
    """

    service: CompactionService
    counter: TokenCounter
    is_preview: bool = False

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> StrategyPlan:
        """See `Strategy.plan`.

        Where a summary is not to be had, shorter is better than nothing.

        Raises:
            CompactionError: There is nothing to gain.
        """
        shorter: StrategyPlan | None = None
        if not request.wants_summary:
            shorter = await asyncio.to_thread(shorten_in_place, request, self.counter)
            if shorter.tokens_before <= request.target_tokens and not request.must_shrink:
                raise NothingToCompactError("Nothing to compact: the context is small enough.")
            gained = shorter.tokens_before - shorter.tokens_after
            if gained < request.least_gain_tokens or not shorter.edits:
                shorter = None
            elif shortening_does(shorter, request.target_tokens):
                return shorter
        try:
            draft = await asyncio.to_thread(self.service.draft, request)
            expected = self.service.expected_tokens(request, draft)
            is_over = expected > _MUCH_OVER * request.target_tokens
            if is_over and shorter is not None and shorter.tokens_after <= request.target_tokens:
                return shorter  # the newest exchange alone is larger than the target
            return await self._summarised(request, draft, on_progress, on_usage)
        except NothingToCompactError:
            if shorter is None:
                raise
            return shorter
        except CompactionError as error:
            if shorter is None:
                raise
            return replace(shorter, note=f"Shortened, but not summarised. {error}")

    async def _summarised(
        self,
        request: CompactionRequest,
        draft: Draft,
        on_progress: OnProgress,
        on_usage: OnUsage,
    ) -> StrategyPlan:
        service = self.service
        before = draft.tokens_before(request)
        if self.is_preview and service.has_model:
            after = service.expected_tokens(request, draft)
            return StrategyPlan((), before, after, {}, summarised=len(draft.messages))
        written = None
        ahead = request.ahead
        if ahead is not None and draft.can_take_prose_of(ahead.draft):
            on_progress("finishing the summary started earlier", 0)
            written = await ahead.written()
        else:
            on_progress("reading the conversation", 0)
        result = await service.finish(request, draft, on_progress, on_usage, written)
        return StrategyPlan(
            result.edits,
            before,
            result.estimated_after,
            {},
            result.note,
            result,
            len(draft.messages),
        )
