"""The strategy `agent`: a model that compresses a copy of the context with four tools."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import (
    ModelClient,
    OnProgress,
    OnUsage,
    RequestTracker,
    failure_of,
)
from agent_tui.compaction.shorten import shorten_middle
from agent_tui.compaction.strategies.agent.actions import AgentActions
from agent_tui.compaction.strategies.agent.budget import TokenBudget, budget_for
from agent_tui.compaction.strategies.agent.checks import edits_problem
from agent_tui.compaction.strategies.agent.copy import ContextCopy
from agent_tui.compaction.strategies.agent.listing import listing
from agent_tui.compaction.strategies.agent.prompt import REMINDER, Status
from agent_tui.compaction.strategies.agent.reply import AgentReply, agent_reply, agent_request
from agent_tui.compaction.strategies.base import StrategyPlan
from agent_tui.compaction.summary.candidates import ModelLookup, candidates
from agent_tui.compaction.summary.writer import SummaryModel
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.messages import Message, UserMessage
from agent_tui.providers.base import ProviderError
from agent_tui.tokens import TokenCounter

Clock: TypeAlias = Callable[[], float]
"""Seconds that only go forward."""

MOST_ROUNDS = 8
TIME_LIMIT_S = 120.0
"""Recorded summaries of large models took 71 to 105 s; work that takes longer is no gain."""

_FORGIVEN_ROUNDS = 1
"""Replies without any call that could be carried out, in all."""

_FOCUS_CHARS = 1_000


class CompressionAgent:
    """Has a model shorten and sum up parts of a context until it meets its target.

    Nothing is taken over unless the agent has verified that the target is met and a check by
    code agrees; else the tiers take over.

    Args:
        client: Asks the model; None where there is none.
        counter: Counts tokens.
        models: Answers what is known of models.
        clock: For the time limit.
    """

    def __init__(
        self,
        client: ModelClient | None,
        counter: TokenCounter,
        models: ModelLookup,
        clock: Clock = time.monotonic,
    ) -> None:
        self._client = client
        self._counter = counter
        self._models = models
        self._clock = clock

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> StrategyPlan:
        """See `Strategy.plan`.

        Models are tried in the order of summaries; where one cannot be reached the next goes on
        with the work, within the same rounds and time.

        Raises:
            CompactionError: the agent did not come to the target, for the reason given.
        """
        if self._client is None:
            raise _gave_up("no model is available")
        on_progress("reading the conversation", 0)
        copy = await asyncio.to_thread(ContextCopy, request, self._counter)
        if copy.before_tokens <= copy.target_tokens:
            raise NothingToCompactError("Nothing to compact: the context is small enough.")
        if await asyncio.to_thread(lambda: copy.is_met):
            return await asyncio.to_thread(self._checked, request, copy, {})
        if copy.protected_tokens > copy.target_tokens:
            raise _gave_up("the protected messages alone exceed the target")
        tracker = RequestTracker(on_progress, on_usage)
        work = _Work(request, copy, self._counter, self._client, tracker, self._clock)
        found = candidates(self._models, request.settings, request.model)
        failures = list(found.problems)
        for model in found.models:
            try:
                await work.run(model)
            except ProviderError as error:
                failures.append(failure_of(model.ref, error))
                continue
            return await asyncio.to_thread(self._checked, request, copy, work.statistics)
        raise _gave_up("; ".join(failures))

    def _checked(
        self, request: CompactionRequest, copy: ContextCopy, statistics: dict[str, int]
    ) -> StrategyPlan:
        edits, before, after = copy.edits, copy.before_tokens, copy.used_tokens
        protected = frozenset(unit.entry_id for unit in copy.units if unit.is_protected)
        problem = edits_problem(request, edits, protected)
        if problem:
            raise _gave_up(f"its work failed the check: {problem}")
        return StrategyPlan(
            edits=edits,
            tokens_before=before,
            tokens_after=after,
            statistics={
                "messages_changed": len(edits),
                **statistics,
                "protected": len(protected),
                "before": before,
                "after": after,
            },
        )


@dataclass(frozen=True, slots=True)
class _Exchange:
    """The last reply with the answers to its calls, and what is to be said about it."""

    messages: tuple[Message, ...] = ()
    remark: str = ""


class _Work:
    """The rounds of one compaction, whichever models take part."""

    def __init__(
        self,
        request: CompactionRequest,
        copy: ContextCopy,
        counter: TokenCounter,
        client: ModelClient,
        tracker: RequestTracker,
        clock: Clock,
    ) -> None:
        self._copy = copy
        self._counter = counter
        self._client = client
        self._tracker = tracker
        self._clock = clock
        self._deadline_s = clock() + TIME_LIMIT_S
        self._focus = shorten_middle(request.focus, _FOCUS_CHARS)
        self._actions = AgentActions(copy, counter)
        self._rounds = 0
        self._useless_rounds = 0

    @property
    def statistics(self) -> dict[str, int]:
        """What the agent did."""
        return {
            "tool_results_shortened": self._actions.results,
            "segments_replaced": self._actions.segments,
            "rounds": self._rounds,
        }

    async def run(self, model: SummaryModel) -> None:
        """Let `model` work until it has verified that the target is met.

        Raises:
            ProviderError: the model cannot be asked.
            CompactionError: it does not do it.
        """
        room = await asyncio.to_thread(budget_for, model.info, self._counter)
        if room is None:
            raise ProviderError("context_overflow", "its window is too small for the work")
        self._actions.forget_contents()
        last = _Exchange()
        while self._rounds < MOST_ROUNDS:
            self._rounds += 1
            reply = await self._ask(model, room, last)
            if reply.finish == "contentFilter":
                raise _gave_up("the provider's content filter stopped it")
            if not reply.message.tool_calls:
                self._count_useless("it answered with text instead of tool calls")
                self._actions.forget_contents()
                last = _Exchange(remark=REMINDER)
                continue
            outcome = await asyncio.to_thread(self._actions.carry_out, reply, room)
            if outcome.is_verified:
                return
            if outcome.problem:
                self._count_useless(outcome.problem.rstrip("."))
            last = _Exchange((reply.message, *outcome.results))
        raise _gave_up(f"the target was not met in {MOST_ROUNDS} rounds")

    async def _ask(self, model: SummaryModel, room: TokenBudget, last: _Exchange) -> AgentReply:
        left_s = self._deadline_s - self._clock()
        too_late = _gave_up(f"it did not finish within {TIME_LIMIT_S:.0f} s")
        if left_s <= 0:
            raise too_late
        status = await asyncio.to_thread(self._status, room, last)
        messages = (UserMessage(content=status.text), *last.messages)
        request = agent_request(model.ref, messages, room.output)
        try:
            async with asyncio.timeout(left_s):
                reply = await self._client.ask(request, self._phase(), self._tracker)
        except TimeoutError:
            raise too_late from None
        return agent_reply(reply)

    def _status(self, room: TokenBudget, last: _Exchange) -> Status:
        return Status(
            used_tokens=self._copy.used_tokens,
            target_tokens=self._copy.target_tokens,
            round=self._rounds,
            most_rounds=MOST_ROUNDS,
            listing=listing(self._copy, self._counter, room.listing, room.segment),
            focus=self._focus,
            remark=last.remark,
        )

    def _phase(self) -> str:
        changed = len(self._copy.edits)
        messages = f"{changed} message{'s' * (changed != 1)} shortened"
        return f"compression agent {self._rounds}/{MOST_ROUNDS}, {messages}"

    def _count_useless(self, problem: str) -> None:
        self._useless_rounds += 1
        if self._useless_rounds > _FORGIVEN_ROUNDS:
            raise _gave_up(problem)


def _gave_up(why: str) -> CompactionError:
    return CompactionError(f"The compression agent did not reach the target: {why}.")
