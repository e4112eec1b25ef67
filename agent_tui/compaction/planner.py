"""Plans and previews compactions for the rest of the program."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from agent_tui.compaction.candidates import ModelLookup, candidates
from agent_tui.compaction.conversation import ledger_of
from agent_tui.compaction.curation.answer import KeepChoice, NoChoice
from agent_tui.compaction.curation.choosing import OnChoice, own_curator
from agent_tui.compaction.curation.question import make_ask
from agent_tui.compaction.draft import make_draft
from agent_tui.compaction.outcome import SUMMARY_TIER, TIERED, CompactionPreview, Outcome
from agent_tui.compaction.proposal import Proposal
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.strategies.base import (
    OnDecisions,
    Strategy,
    StrategyServices,
    target_when_asked,
)
from agent_tui.compaction.strategies.message_plan import ConversationUnits
from agent_tui.compaction.strategies.registry import (
    CompactionStrategy,
    build_strategies,
    strategy_named,
    unknown_strategy,
)
from agent_tui.compaction.strategies.tiered import TieredStrategy, shorten_in_place, shortening_does
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.providers.client import (
    ModelClient,
    OnProgress,
    OnUsage,
    RequestTracker,
    ignore_usage,
    unseen,
)
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.tokens import TokenCounter


class CompactionPlanner:
    """Plans compactions without side effects; the caller writes, prints or shows the outcome.

    The arguments `client`, `counter` and `models` are attributes, too.

    Args:
        client: Asks models; None to do everything by code.
        counter: Counts tokens.
        models: Looks up models.
        on_decisions: Takes what strategies did to each message, for a log; None for no log.
        brought: The strategies of plugins.
    """

    def __init__(
        self,
        client: ModelClient | None,
        counter: TokenCounter,
        models: ModelLookup,
        *,
        on_decisions: OnDecisions | None = None,
        brought: Sequence[CompactionStrategy] = (),
    ) -> None:
        self.client = client
        self.counter = counter
        self.models = models
        self._curator = own_curator(client, counter, models)
        self._strategies: Mapping[str, Strategy] = {
            **build_strategies(StrategyServices(client, counter, models, on_decisions), brought),
            TIERED: TieredStrategy(self._curator, counter),
        }
        self._without_model = build_strategies(StrategyServices(None, counter, models), brought)

    def problem_of(self, strategy: str) -> str:
        """Why compactions cannot use `strategy`, for the user; empty if they can."""
        problem = unknown_strategy(strategy, self._strategies)
        return f"{problem} {TIERED} compacts until you change it." if problem else ""

    async def outcome(
        self,
        request: CompactionRequest,
        strategy: str,
        on_progress: OnProgress,
        on_usage: OnUsage = ignore_usage,
    ) -> Outcome:
        """Compact `request` without writing anything. Cancel the task to stop.

        Args:
            request: The conversation.
            strategy: The strategy to try first. If it is unknown, fails, frees too little or misses
                the target, `tiered` takes over; if that also fails, the first result is used.
            on_progress: Called for each step.
            on_usage: Called with the usage of every paid request.

        Raises:
            CompactionError: There is nothing to free, or the compaction failed.
        """
        return await _decide(request, strategy, self._strategies, on_progress, on_usage)

    async def preview(self, request: CompactionRequest, strategy: str) -> CompactionPreview:
        """What ``/compact`` and an automatic compaction by `strategy` would do without a model.

        A model would fill the same space with its own choice: so where a compaction has left less
        than the target, another one frees nothing.
        """
        outcome: Outcome | None = None
        summary: Outcome | None = None
        problem = ""
        try:
            summary = await self._by_code(replace(request, occasion="new session"), TIERED)
        except CompactionError as error:
            problem = error.message
        # Without a summary, an automatic compaction has nothing to do.
        with suppress(CompactionError):
            outcome = await self._by_code(request, strategy)
        units = await asyncio.to_thread(ConversationUnits, request, self.counter, strategy)
        before = units.tokens_before
        measured, estimated = request.sizes.used or before, max(before, 1)

        def scale(tokens: int) -> int:
            return tokens * measured // estimated

        messages, freed = _by_tier(outcome)
        was_compacted = any(isinstance(entry, CompactionEntry) for entry in request.path)
        is_small = was_compacted and before <= request.sizes.target
        after = before if is_small or not summary else min(summary.tokens_after, before)
        return CompactionPreview(
            tokens_before=measured,
            tokens_after=scale(outcome.tokens_after if outcome else before),
            compact_tokens=scale(after) if summary else None,
            summarised=summary.summarised if summary else 0,
            window=scale(request.sizes.window),
            target_tokens=scale(request.sizes.target),
            messages=messages,
            freed={tier: scale(tokens) for tier, tokens in freed.items()},
            ledger=await asyncio.to_thread(ledger_of, request),
            problem=problem,
        )

    async def propose(
        self,
        request: CompactionRequest,
        on_progress: OnProgress,
        on_usage: OnUsage = ignore_usage,
        *,
        asks_model: bool = True,
    ) -> Proposal:
        """Propose what compacting `request` would keep, for the user to decide.

        Args:
            request: The conversation.
            on_progress: Called for each step.
            on_usage: Called with the usage of every paid request.
            asks_model: Whether to ask a model what it needs.

        Raises:
            NothingToCompactError: A summary would free nothing.
        """
        draft = await asyncio.to_thread(make_draft, request, counter=self.counter)
        ask = await asyncio.to_thread(make_ask, request, draft, counter=self.counter)
        if not asks_model or self._curator is None:
            return Proposal(ask)
        tracker = RequestTracker(on_progress, on_usage)
        match await self._curator.choose(request, ask, tracker):
            case KeepChoice() as choice:
                return Proposal(ask, choice)
            case NoChoice(problems=problems):
                return Proposal(ask, problem="; ".join(problems))

    async def choose_ahead(
        self, request: CompactionRequest, on_usage: OnUsage, on_choice: OnChoice
    ) -> KeepChoice | None:
        """Ask a model what to keep, for the ``ahead`` of a later request.

        None if shortening messages would suffice, or no model answers. For `on_choice`, see
        `Curator.choose`.

        Raises:
            NothingToCompactError: A summary would free nothing.
        """
        shorter = await asyncio.to_thread(shorten_in_place, request, self.counter)
        if self._curator is None or shortening_does(shorter, request.sizes.target):
            return None
        ask = (await self.propose(request, unseen, asks_model=False)).ask
        tracker = RequestTracker(unseen, on_usage)
        found = await self._curator.choose(request, ask, tracker, on_choice)
        return found if isinstance(found, KeepChoice) else None

    def reader(self, settings: CompactionSettings, model: ModelRef) -> ModelInfo | None:
        """The first model to ask if nothing of a conversation with `model` is cached.

        None if no model can be asked.
        """
        if self._curator is None:
            return None
        return next((one.info for one in candidates(self.models, settings, model).models), None)

    async def _by_code(self, request: CompactionRequest, strategy: str) -> Outcome:
        request = replace(request, asking=replace(request.asking, ahead=None))
        return await _decide(request, strategy, self._without_model, unseen, ignore_usage)


async def _decide(
    request: CompactionRequest,
    name: str,
    strategies: Mapping[str, Strategy],
    on_progress: OnProgress,
    on_usage: OnUsage,
) -> Outcome:
    """Try the ways to compact in their fixed order."""
    found: Outcome | None = None
    problem = ""
    if name != TIERED:
        sizes = replace(request.sizes, target=_target_when_asked(request, name))
        wanted = replace(request, sizes=sizes)
        try:
            strategy = strategy_named(name, strategies)
            found = await strategy.plan(wanted, on_progress=on_progress, on_usage=on_usage)
        except NothingToCompactError:
            if request.is_asked and request.sizes.used_estimate <= request.sizes.target:
                raise
            problem = "It found nothing to shorten."
        except CompactionError as error:
            problem = str(error)
        if found is not None and found.freed_tokens < request.sizes.least_gain:
            found, problem = None, "It would free too little."
        elif found is not None and found.tokens_after <= request.sizes.target:
            return replace(found, strategy=name)
        elif found is not None:
            problem = found.note or "It did not reach the target."
    try:
        plan = await strategies[TIERED].plan(request, on_progress=on_progress, on_usage=on_usage)
    except CompactionError:
        if found is None:
            raise
        return replace(found, strategy=name)
    took_over = f"{name}: {problem} The tiers took over." if problem else ""
    return replace(plan, note=" ".join(filter(None, (took_over, plan.note))))


def _target_when_asked(request: CompactionRequest, name: str) -> int:
    if not request.is_asked:
        return request.sizes.target
    used = request.sizes.used_estimate
    return target_when_asked(name, used, request.settings, request.sizes.target)


def _by_tier(outcome: Outcome | None) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Number of messages that each tier would change, and tokens freed; empty if none would."""
    if outcome is None or outcome.strategy != TIERED:
        return {}, {}
    if outcome.summarised:
        return outcome.messages, {SUMMARY_TIER: outcome.tokens_before - outcome.tokens_after}
    return outcome.messages, outcome.freed
