"""Strategy `hybrid`: metadata for tool results, fewer words for what was said, the newest as is."""

import asyncio
from collections.abc import Iterator

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import ModelClient, OnProgress, OnUsage, RequestTracker
from agent_tui.compaction.strategies.base import OnDecisions, StrategyPlan
from agent_tui.compaction.strategies.hybrid.draft import HybridDraft, LongUnit
from agent_tui.compaction.strategies.hybrid.model import Condenser
from agent_tui.compaction.strategies.hybrid.report import decisions, note_on, statistics
from agent_tui.compaction.summary.candidates import ModelLookup, candidates
from agent_tui.errors import NothingToCompactError
from agent_tui.tokens import TokenCounter


class HybridStrategy:
    """Makes messages shorter one by one, the oldest first, until the target is reached.

    Args:
        client: Asks who puts messages into fewer words; None has them cut instead.
        counter: Estimates.
        models: Answers what is known of models.
        on_decisions: Told of every decision, for a log; None for no log.
    """

    def __init__(
        self,
        client: ModelClient | None,
        counter: TokenCounter,
        models: ModelLookup,
        on_decisions: OnDecisions | None = None,
    ) -> None:
        self._client = client
        self._counter = counter
        self._models = models
        self._on_decisions = on_decisions

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> StrategyPlan:
        """See `Strategy.plan`. A model that fails costs words, not the plan.

        Raises:
            NothingToCompactError: No message can be made shorter.
        """
        on_progress("reading the conversation", 0)
        draft = await asyncio.to_thread(HybridDraft, request, self._counter)
        on_progress("describing tool results", 0)
        await asyncio.to_thread(draft.describe_old_results)
        condenser = self._condenser(request, on_progress, on_usage)
        await self._condense(draft, condenser)
        await asyncio.to_thread(draft.describe_new_results)
        plan = await asyncio.to_thread(_finished, draft, condenser)
        if self._on_decisions is not None:
            lines = decisions(draft, plan.edits)
            await asyncio.to_thread(self._on_decisions, lines)
        if not plan.edits:
            raise NothingToCompactError("Nothing to compact: no older message can be shorter.")
        return plan

    def _condenser(
        self, request: CompactionRequest, on_progress: OnProgress, on_usage: OnUsage
    ) -> Condenser | None:
        if self._client is None:
            return None
        found = candidates(self._models, request.settings, request.model)
        tracker = RequestTracker(on_progress, on_usage)
        return Condenser(self._client, found.models, tracker, request.focus)

    async def _condense(self, draft: HybridDraft, condenser: Condenser | None) -> None:
        """Call by call until the target is reached or no long message is left."""
        waiting: Iterator[LongUnit] = draft.long_units()
        done = 0
        while asked := await asyncio.to_thread(draft.next_call, waiting):
            texts = [""] * len(asked)
            if condenser is not None:
                first, last = done + 1, done + len(asked)
                found = await condenser.condense(
                    [long.asked for long in asked], f"condensing messages {first}-{last}"
                )
                texts = [found.get(at, "") for at in range(len(asked))]
            await asyncio.to_thread(draft.take_short_forms, asked, texts)
            done += len(asked)


def _finished(draft: HybridDraft, condenser: Condenser | None) -> StrategyPlan:
    edits = draft.finished()
    after = draft.tokens_before - sum(unit.tokens - draft.size_of(unit) for unit in draft.units)
    failures = condenser.failures if condenser is not None else ["no model"]
    return StrategyPlan(
        edits=edits,
        tokens_before=draft.tokens_before,
        tokens_after=after,
        statistics=statistics(draft, edits, after),
        note=note_on(draft, edits, after, failures),
    )
