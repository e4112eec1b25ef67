"""The strategy `agent`: a model that edits the plan with four tools until it meets its target."""

import asyncio
from dataclasses import dataclass

from agent_tui.compaction.candidates import Candidates, SummaryModel, candidates
from agent_tui.compaction.outcome import Outcome
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.strategies.base import StrategyServices
from agent_tui.compaction.strategies.message_plan import ConversationUnits
from agent_tui.compaction.transcript import escape_tags
from agent_tui.errors import CompactionError
from agent_tui.features.strategies.agent.actions import (
    REMINDER,
    SYSTEM_PROMPT,
    TOOLS,
    VERIFY,
    AgentActions,
    Room,
)
from agent_tui.messages import Message, UserMessage
from agent_tui.omissions import shorten_middle
from agent_tui.providers.base import ModelInfo, ModelRequest, ProviderError
from agent_tui.providers.client import (
    ModelClient,
    ModelReply,
    OnProgress,
    OnUsage,
    RequestTracker,
    failure_of,
)
from agent_tui.tokens import TokenCounter

MOST_ROUNDS = 8
TIME_LIMIT_S = 120.0
"""Summaries of large models were recorded to take 71 to 105 s; a longer run is no gain."""

_FORGIVEN_ROUNDS = 1
"""Replies allowed, in total, without any call that can be carried out."""

_FOCUS_CHARS = 1_000
_INPUT_SHARE = 0.75
"""Our token estimates were up to 30 % below a provider's count in real sessions."""

_OUTPUT_PARTS, _MOST_OUTPUT_TOKENS = 5, 6_000
_LISTING_PARTS, _MOST_LISTING_TOKENS = 3, 6_000
_MOST_READING_TOKENS = 40_000
_SEGMENT_TOKENS = (400, 6_000)
_LEAST_TOKENS = 400
_STATUS_TOKENS = 300
"""Tokens of a request beside prompt, tools, list and answers to calls."""


@dataclass(frozen=True, slots=True)
class CompressionAgent:
    """Lets a model shorten and summarize parts of a context until it meets its target.

    Its plan is used if it meets the target, however the work ended, and passes a check by code;
    otherwise the tiers take over.

    Args:
        services: Models and counter; without a client, planning fails.
        limit_s: Time limit in seconds.
    """

    services: StrategyServices
    limit_s: float = TIME_LIMIT_S

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> Outcome:
        """See `Strategy.plan`.

        Models are tried in the same order as for summaries; if one is unreachable, the next
        continues the work within the same rounds and time.

        Raises:
            CompactionError: The agent missed the target, for the reason given.
        """
        services = self.services
        if services.client is None:
            raise _gave_up("no model is available")
        on_progress("reading the conversation", 0)
        conversation = await asyncio.to_thread(
            ConversationUnits, request, services.counter, "agent"
        )
        plan = await asyncio.to_thread(conversation.plan)
        tracker = RequestTracker(on_progress, on_usage)
        work = _Work(AgentActions(plan), services.client, tracker, request.asking.focus)
        if not await asyncio.to_thread(lambda: plan.is_met):
            protected = sum(unit.tokens for unit in conversation.units if unit.is_protected)
            if protected + request.sizes.overhead > conversation.target_tokens:
                raise _gave_up("the protected messages alone exceed the target")
            try:
                async with asyncio.timeout(self.limit_s):
                    await work.run(candidates(services.models, request.settings, request.model))
            except TimeoutError:
                await _check_met(work, _gave_up(f"it did not finish within {self.limit_s:.0f} s"))
            except CompactionError as error:
                await _check_met(work, error)
        made = work.actions.plan
        return await asyncio.to_thread(
            lambda: made.finish(work.statistics, on_decisions=services.on_decisions)
        )


@dataclass(slots=True)
class _Work:
    """The rounds of one compaction, by whichever models take part."""

    actions: AgentActions
    client: ModelClient
    tracker: RequestTracker
    focus: str
    rounds: int = 0
    useless_rounds: int = 0

    @property
    def statistics(self) -> dict[str, int]:
        """Counts of what the agent did."""
        return {
            "messages_changed": len(self.actions.plan.edits),
            "tool_results_shortened": self.actions.results,
            "segments_replaced": self.actions.segments,
            "rounds": self.rounds,
        }

    async def run(self, found: Candidates) -> None:
        """Let one of the models in `found` work until it has verified the target.

        Raises:
            CompactionError: No model does.
        """
        failures = list(found.problems)
        for model in found.models:
            try:
                return await self._run(model)
            except ProviderError as error:
                failures.append(failure_of(model.ref, error))
        raise _gave_up("; ".join(failures))

    async def _run(self, model: SummaryModel) -> None:
        counter = self.actions.plan.conversation.counter
        room = await asyncio.to_thread(room_for, model.info, counter)
        if room is None:
            raise ProviderError("context_overflow", "its window is too small for the work")
        self.actions.forget_contents()
        last, remark = tuple[Message, ...](), ""
        while self.rounds < MOST_ROUNDS:
            self.rounds += 1
            reply = await self._ask(model, room, last, remark)
            if reply.finish == "contentFilter":
                raise _gave_up("the provider's content filter stopped it")
            if not reply.calls:
                self._count_useless("it answered with text instead of tool calls")
                self.actions.forget_contents()
                last, remark = (), REMINDER
                continue
            done = await asyncio.to_thread(self.actions.carry_out, reply, room)
            if done.is_verified:
                return
            if done.problem:
                self._count_useless(done.problem.rstrip("."))
            last, remark = done.messages, ""
        raise _gave_up(f"the target was not met in {MOST_ROUNDS} rounds")

    async def _ask(
        self, model: SummaryModel, room: Room, last: tuple[Message, ...], remark: str
    ) -> ModelReply:
        status = await asyncio.to_thread(self._status, room, remark)
        request = ModelRequest(
            model=model.ref,
            system=SYSTEM_PROMPT,
            messages=(UserMessage(content=status), *last),
            tools=TOOLS,
            max_output_tokens=room.output,
            purpose="summary",
        )
        changed = len(self.actions.plan.edits)
        done = f"{changed} message{'s' * (changed != 1)} shortened"
        phase = f"compression agent {self.rounds}/{MOST_ROUNDS}, {done}"
        return await self.client.ask(request, phase, self.tracker)

    def _status(self, room: Room, remark: str) -> str:
        plan = self.actions.plan
        used, target = plan.used_tokens, plan.conversation.target_tokens
        todo = f"{used - target:,} tokens to go." if used > target else f"It is met: call {VERIFY}."
        focus = escape_tags(shorten_middle(self.focus, _FOCUS_CHARS))
        about = "Keep everything about what the user asked to pay attention to:"
        blocks = (
            f"Round {self.rounds} of {MOST_ROUNDS}. The context has {used:,} tokens; "
            f"the target is {target:,}. {todo}",
            self.actions.listing(room.listing, room.segment),
            f"{about}\n<focus>\n{focus}\n</focus>" if focus else "",
            remark,
        )
        return "\n\n".join(block for block in blocks if block)

    def _count_useless(self, problem: str) -> None:
        self.useless_rounds += 1
        if self.useless_rounds > _FORGIVEN_ROUNDS:
            raise _gave_up(problem)


async def _check_met(work: _Work, problem: CompactionError) -> None:
    """Raise `problem`, which ended the work, unless the plan meets the target."""
    if not await asyncio.to_thread(lambda: work.actions.plan.is_met):
        raise problem from None


def room_for(info: ModelInfo, counter: TokenCounter) -> Room | None:
    """The limits for a model; None if its window is too small to work in.

    A request holds prompt, tools, list, the last reply and the answers to its calls, and leaves
    space for the next reply.
    """
    limits = [limit for limit in (info.max_output, _MOST_OUTPUT_TOKENS) if limit > 0]
    output = min(info.window // _OUTPUT_PARTS, *limits)
    frame = counter.count_text(SYSTEM_PROMPT) + counter.count_tools(TOOLS) + _STATUS_TOKENS
    room = int((info.window - 2 * output) * _INPUT_SHARE) - frame
    if room < _LEAST_TOKENS:
        return None
    listing = min(room // _LISTING_PARTS, _MOST_LISTING_TOKENS)
    answers = min(room - listing, _MOST_READING_TOKENS)
    lowest, highest = _SEGMENT_TOKENS
    return Room(output, listing, answers, min(max(answers, lowest), highest))


def _gave_up(why: str) -> CompactionError:
    return CompactionError(f"The compression agent did not reach the target: {why}.")
