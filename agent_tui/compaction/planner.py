"""Plans and previews compactions for the rest of the program."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from agent_tui.compaction.branch import BranchRequest, BranchSummary, summarise_branch
from agent_tui.compaction.curation.answer import Choice, NoChoice
from agent_tui.compaction.curation.curator import Curator
from agent_tui.compaction.draft import CompactionRequest, ledger_of, make_ask, make_draft
from agent_tui.compaction.model_client import (
    ModelClient,
    OnProgress,
    OnUsage,
    RequestTracker,
    uncounted,
    unseen,
)
from agent_tui.compaction.outcome import SUMMARY_TIER, TIERED, CompactionPreview, Outcome
from agent_tui.compaction.proposal import Proposal
from agent_tui.compaction.strategies.base import (
    OnDecisions,
    Strategy,
    StrategyPlan,
    StrategyServices,
    target_when_asked,
)
from agent_tui.compaction.strategies.in_place import shorten_in_place, shortening_does
from agent_tui.compaction.strategies.message_plan import Conversation
from agent_tui.compaction.strategies.registry import build_strategies
from agent_tui.compaction.strategies.tiered import TieredStrategy
from agent_tui.compaction.summary.candidates import ModelLookup, candidates
from agent_tui.compaction.summary.writer import Writer
from agent_tui.config import CompactionSettings, CompactionStrategy
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.tokens import TokenCounter


class CompactionPlanner:
    """Plans compactions without any side effect; whoever asks writes, prints or shows the outcome.

    Args:
        client: Asks models; None has everything done by code.
        counter: Counts tokens.
        models: Answers what is known of models.
        on_decisions: Told what strategies did to which message, for a log; None for no log.
    """

    def __init__(
        self,
        client: ModelClient | None,
        counter: TokenCounter,
        models: ModelLookup,
        *,
        on_decisions: OnDecisions | None = None,
    ) -> None:
        self._client = client
        self._counter = counter
        self._models = models
        self._curator = Curator(client, counter, models) if client is not None else None
        self._strategies: Mapping[CompactionStrategy, Strategy] = {
            **build_strategies(StrategyServices(client, counter, models, on_decisions)),
            TIERED: TieredStrategy(self._curator, counter),
        }
        self._without_model = build_strategies(StrategyServices(None, counter, models))

    async def outcome(
        self,
        request: CompactionRequest,
        strategy: CompactionStrategy,
        on_progress: OnProgress,
        on_usage: OnUsage = uncounted,
    ) -> Outcome:
        """What comes of compacting `request`. Cancel the task to stop.

        Args:
            request: The conversation.
            strategy: What is tried first. Where it fails, frees too little or does not reach the
                target, `tiered` takes over; if that cannot do anything either, what was found is
                better than nothing.
            on_progress: Told of each step.
            on_usage: Told of every request to a model that was paid for.

        Raises:
            CompactionError: There is nothing to gain, or it went wrong.
        """
        return await _decide(request, strategy, self._strategies, on_progress, on_usage)

    async def preview(
        self, request: CompactionRequest, strategy: CompactionStrategy
    ) -> CompactionPreview:
        """What ``/compact`` and an automatic compaction by `strategy` would do, as code alone does.

        A model that is asked chooses what fills the same room.
        """
        outcome: Outcome | None = None
        summary: Outcome | None = None
        problem = ""
        try:
            summary = await self._by_code(replace(request, wants_summary=True), TIERED)
        except CompactionError as error:
            problem = error.message
        # Without one, an automatic compaction has nothing to do.
        with suppress(CompactionError):
            outcome = await self._by_code(request, strategy)
        before = Conversation(request, self._counter, strategy).tokens_before
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
            problem=problem,
        )

    async def propose(
        self,
        request: CompactionRequest,
        on_progress: OnProgress,
        on_usage: OnUsage = uncounted,
        *,
        asks_model: bool = True,
    ) -> Proposal:
        """What compacting `request` would keep, for the person to decide about.

        Args:
            request: The conversation.
            on_progress: Told of each step.
            on_usage: Told of every request that was paid for.
            asks_model: Whether a model says what it needs.

        Raises:
            NothingToCompactError: A summary would gain nothing.
        """
        await asyncio.to_thread(make_draft, request, counter=self._counter)
        ask = await asyncio.to_thread(make_ask, request, counter=self._counter)
        if not asks_model or self._curator is None:
            return Proposal(ask)
        tracker = RequestTracker(on_progress, on_usage)
        match await self._curator.choose(request, ask, tracker):
            case Choice() as choice:
                return Proposal(ask, choice)
            case NoChoice(problems=problems):
                return Proposal(ask, problem="; ".join(problems))

    async def choose_ahead(self, request: CompactionRequest, on_usage: OnUsage) -> Choice | None:
        """What a model wants kept, for the ``ahead`` of a later request.

        None where shorter messages alone would do, or none answers.

        Raises:
            NothingToCompactError: A summary would gain nothing.
        """
        shorter = await asyncio.to_thread(shorten_in_place, request, self._counter)
        if self._curator is None or shortening_does(shorter, request.target_tokens):
            return None
        ask = (await self.propose(request, unseen, asks_model=False)).ask
        found = await self._curator.choose(request, ask, RequestTracker(unseen, on_usage))
        return found if isinstance(found, Choice) else None

    def reader(self, settings: CompactionSettings, model: ModelRef) -> ModelInfo | None:
        """Who is asked first what to keep where nothing of a conversation with `model` is cached.

        None if no model is.
        """
        if self._curator is None:
            return None
        return next((one.info for one in candidates(self._models, settings, model).models), None)

    async def summarise_branch(
        self, request: BranchRequest, on_progress: OnProgress, on_usage: OnUsage = uncounted
    ) -> BranchSummary:
        """Sum up a branch that is being left.

        Raises:
            NothingToCompactError: No reply is left behind.
        """
        writer = Writer(self._client, self._counter) if self._client is not None else None
        models = candidates(self._models, request.settings, request.model)
        return await summarise_branch(request, writer, models, self._counter, on_progress, on_usage)

    async def _by_code(self, request: CompactionRequest, strategy: CompactionStrategy) -> Outcome:
        request = replace(request, ahead=None)
        return await _decide(request, strategy, self._without_model, unseen, uncounted)


async def _decide(
    request: CompactionRequest,
    name: CompactionStrategy,
    strategies: Mapping[CompactionStrategy, Strategy],
    on_progress: OnProgress,
    on_usage: OnUsage,
) -> Outcome:
    """The one order in which the ways to compact are tried."""
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


def _by_tier(outcome: Outcome | None) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """How many messages each tier would change and what that frees; nothing if none would."""
    if outcome is None or outcome.strategy != TIERED:
        return {}, {}
    if outcome.summarised:
        return outcome.messages, {SUMMARY_TIER: outcome.tokens_before - outcome.tokens_after}
    return outcome.messages, outcome.freed
